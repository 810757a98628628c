// What must a file hold, so that a training can go on as if it had not stopped? Weights, both of
// Adam's means, the number of steps, what was chosen at its beginning, and which text it reads.
// The windows of a step need nothing: they follow from seed and number.
//
//   setup  i64[10] = 256 128 2 4 128 1 3000 8 1 <mark of the text>  (numbers_of)
//   rates  f64[3]  = 0.003 0.1 1
//   losses f32[250], gpt.tokens.weight f32[256,128], ..., adam.step i64[]
#include "tiny_compile/cli/checkpoint.h"

#include "tiny_compile/base/error.h"
#include "tiny_compile/nn/files.h"
#include "tiny_compile/trace/creation.h"

namespace tiny_compile {
namespace {

struct Stored {
  static constexpr const char* names[] = {"setup", "rates", "losses", "gpt", "adam"};
  Tensor setup, rates, losses;
  nn::Gpt gpt;
  nn::AdamState<nn::Gpt> adam;
};

constexpr int64_t kMostLayers = 1 << 20, kBytes = 256;

std::vector<int64_t> numbers_of(const Checkpoint& checkpoint) {
  const Setup& setup = checkpoint.setup;
  const nn::GptShape& shape = setup.shape;
  return {shape.vocabulary, shape.context,
          shape.layers,     shape.heads,
          shape.width,      shape.tied,
          setup.steps,      setup.batch,
          setup.seed,       static_cast<int64_t>(checkpoint.text_mark)};
}

const Tensor& required(const NamedTensors& tensors, const char* name, DType dtype,
                       const std::string& path) {
  const auto found = tensors.find(name);
  if (found == tensors.end() || found->second.dtype() != dtype || found->second.rank() != 1)
    fail(path, " is no checkpoint of make train: it lacks '", name, "', ", dtype,
         "[..]; begin anew, or name another file");
  return found->second;
}

// Sizes by which memory is taken: before that, whether the file has so much.
void check_sizes(const nn::GptShape& shape, const NamedTensors& tensors,
                 const std::string& path) {
  const int64_t each = 12 * shape.layers + (shape.tied ? 4 : 5);
  bool fits = shape.layers >= 1 && shape.layers < kMostLayers && shape.vocabulary == kBytes &&
              static_cast<int64_t>(tensors.size()) == 3 * each + 4;
  const auto table = tensors.find("gpt.tokens.weight"),
             places = tensors.find("gpt.positions.weight");
  fits = fits && table != tensors.end() && places != tensors.end() &&
         table->second.shape() == Sizes{shape.vocabulary, shape.width} &&
         places->second.shape() == Sizes{shape.context, shape.width};
  if (!fits)
    fail(path,
         ": its 'setup' is of another model than its weights; the file is damaged: "
         "take an older copy, or begin anew");
}

Checkpoint described(const NamedTensors& tensors, const std::string& path) {
  const std::vector<int64_t> n =
      required(tensors, "setup", DType::i64, path).to_vector<int64_t>();
  const std::vector<double> rates =
      required(tensors, "rates", DType::f64, path).to_vector<double>();
  if (n.size() != 10 || rates.size() != 3)
    fail(path, ": 'setup' has ", n.size(), " numbers and 'rates' ", rates.size(),
         ", not 10 and 3; it is of another version: begin anew");
  Checkpoint result;
  result.setup = {{n[0], n[1], n[2], n[3], n[4], n[5] != 0},
                  n[6],
                  n[7],
                  n[8],
                  rates[0],
                  rates[1],
                  rates[2]};
  result.text_mark = static_cast<uint64_t>(n[9]);
  check_sizes(result.setup.shape, tensors, path);
  check_setup(result.setup);
  return result;
}

}  // namespace

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  const Setup& setup = checkpoint.setup;
  const Training& training = checkpoint.training;
  nn::save(path, Stored{from_vector(numbers_of(checkpoint)),
                        from_vector<double>({setup.rate, setup.decay, setup.clip}),
                        from_vector(training.losses), training.gpt, training.state});
}

Checkpoint load_checkpoint(const std::string& path, Device device) {
  const NamedTensors tensors = load_tensors(path);
  Checkpoint result = described(tensors, path);
  const Tensor& losses = required(tensors, "losses", DType::f32, path);
  result.training = begin_training(result.setup, device);
  Stored stored{tensors.at("setup"), tensors.at("rates"), losses, result.training.gpt,
                result.training.state};
  stored = nn::load(path, stored);
  result.training = {stored.gpt, stored.adam, losses.to_vector<float>()};
  if (stored.adam.step.item<int64_t>() != result.training.steps_done())
    fail(path, ": ", stored.adam.step.item<int64_t>(), " steps were made, but it has ",
         result.training.steps_done(), " losses; the file is damaged: begin anew");
  return result;
}

}  // namespace tiny_compile

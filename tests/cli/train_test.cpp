// make train from the outside, and its parts: what it reads, how it stops and goes on.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/catch.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/base/input_file.h"
#include "tiny_compile/cli/checkpoint.h"
#include "tiny_compile/cli/corpus.h"
#include "tiny_compile/cli/loss_curve.h"
#include "tiny_compile/cli/train_command.h"
#include "tiny_compile/cli/train_options.h"
#include "tiny_compile/cli/trainer.h"
#include "tiny_compile/nn/files.h"
#include "tiny_compile/trace/creation.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

struct Ran {
  int code = 0;
  std::string out, problems;
};

Ran train(const std::vector<std::string>& words) {
  std::ostringstream out, problems;
  const int code = run_train(words, out, problems);
  return {code, out.str(), problems.str()};
}

std::string some_text() {
  std::string text;
  for (int k = 0; k < 60; k++) text += str("line ", k * k, " of a text that repeats itself\n");
  return text;
}

// A small training in a folder of its own.
struct Place {
  tests::Scratch folder;
  std::string text = folder.path("text"), checkpoint = folder.path("gpt.safetensors");

  Place() { std::ofstream(text) << some_text(); }

  std::vector<std::string> words(std::vector<std::string> more) const {
    std::vector<std::string> all{
        text,          "--layers=1", "--width=8",    "--heads=2",
        "--context=8", "--batch=2",  "--device=cpu", "--checkpoint=" + checkpoint};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

Setup small_setup() {
  Setup setup;
  setup.shape = {.vocabulary = 256, .context = 8, .layers = 1, .heads = 2, .width = 8};
  setup.steps = 20, setup.batch = 2;
  return setup;
}

// A process that executes the hidden test case of that tag, about this folder.
tests::Child process_of(const std::string& tag, const Place& place, bool is_small_disk) {
  return tests::Child([&] {
    const std::string disk = place.folder.path("disk");
    if (is_small_disk && !tests::mount_small(disk, "size=128k")) return tests::kNotAllowed;
    alarm(300);
    setenv("TC_TEST_FOLDER", place.folder.path("").c_str(), 1);
    execl("/proc/self/exe", "tests", tag.c_str(), nullptr);
    return 100;
  });
}

int64_t steps_in(const std::string& checkpoint) {
  return load_checkpoint(checkpoint, cpu).training.steps_done();
}

// The last step that a training's output tells of.
int64_t last_told(const std::string& output) {
  const size_t at = output.rfind("\nstep ");
  return at == std::string::npos ? 0 : std::stoll(output.substr(at + 6));
}

Corpus corpus_of(const std::string& learnt, const std::string& held) {
  return {learnt + held, learnt.size()};
}

}  // namespace

TEST_CASE("a 5-gram's bits, worked out by hand", "[train]") {
  const double none = (2 + 2.0 / 256) / 5;  // of aab: a twice, two kinds; nothing followed b
  REQUIRE(five_gram_bits(corpus_of("aab", "a")) == Catch::Approx(-std::log2(none)));
  const double any = (2 + 2.0 / 256) / 6, behind_b = (1 + any) / 2,
               behind_ab = (1 + behind_b) / 2;
  REQUIRE(five_gram_bits(corpus_of("abab", "a")) == Catch::Approx(-std::log2(behind_ab)));
  const double unseen = (2 / 256.0) / 6;
  REQUIRE(five_gram_bits(corpus_of("abab", "x")) == Catch::Approx(-std::log2(unseen / 2 / 2)));
}

TEST_CASE("a step's windows follow from seed and number", "[train]") {
  const Corpus corpus = corpus_of(some_text(), std::string(100, '~'));
  const Batch one = batch_at(corpus, 7, 3, 64, 8), again = batch_at(corpus, 7, 3, 64, 8);
  REQUIRE(same_bits(one.bytes, again.bytes));
  REQUIRE_FALSE(same_bits(one.bytes, batch_at(corpus, 7, 4, 64, 8).bytes));
  REQUIRE_FALSE(same_bits(one.bytes, batch_at(corpus, 8, 3, 64, 8).bytes));
  REQUIRE(same_bits(one.bytes.slice(1, 1), one.next.slice(1, 0, 7)));
  for (int64_t step = 0; step < 20; step++) {  // never of what is held out
    const Batch batch = batch_at(corpus, 7, step, 64, 8);
    REQUIRE(batch.next.max().item<int64_t>() < '~');
  }
}

TEST_CASE("each held-out byte is measured once", "[train]") {
  const Corpus corpus = corpus_of(some_text(), std::string(403, 'z'));
  const Setup setup = small_setup();
  const Trainer trainer(setup, corpus, cpu, {.backend = "interpreter"});
  nn::Gpt gpt = begin_training(setup, cpu).gpt;
  gpt.tokens.weight = zeros({256, 8});  // all bytes are equally likely
  REQUIRE(trainer.held_bits(gpt) == Catch::Approx(8));
}

TEST_CASE("a training that was stopped goes on bit for bit", "[train]") {
  const Place whole, parts;
  REQUIRE(train(whole.words({"--steps=20", "--every=20"})).code == 0);
  // Stopped behind step 10: the checkpoint that was left there.
  const Corpus corpus = read_corpus({parts.text}, ".", 8);
  const Setup setup = small_setup();
  const Trainer trainer(setup, corpus, cpu);
  Checkpoint half{setup, corpus.mark(), begin_training(setup, cpu)};
  while (half.training.steps_done() < 10) trainer.step(half.training);
  save_checkpoint(parts.checkpoint, half);
  const Ran rest = train(parts.words({"--resume"}));
  INFO(rest.problems);
  REQUIRE(rest.code == 0);
  const NamedTensors ours = load_tensors(parts.checkpoint),
                     theirs = load_tensors(whole.checkpoint);
  REQUIRE(ours.size() == theirs.size());
  for (const auto& [name, tensor] : ours) {
    INFO(name);
    REQUIRE(same_bits(tensor, theirs.at(name)));
  }
  REQUIRE(ours.at("losses").size(0) == 20);
  REQUIRE(read_text(parts.checkpoint) == read_text(whole.checkpoint));
}

TEST_CASE("a training shows its curve and a sample, and leaves a picture", "[train]") {
  const Place place;
  const Ran ran = train(place.words({"--steps=20", "--every=10"}));
  REQUIRE(ran.code == 0);
  for (const char* part : {"step 20 of 20", "tokens/s", "bits a byte", "o held out", "5-gram",
                           "A sample:\n\n## ", "make sample"})
    REQUIRE_THAT(ran.out, ContainsSubstring(part));
  REQUIRE_THAT(read_text(place.folder.path("gpt.svg")),
               ContainsSubstring("<svg") && ContainsSubstring("held out"));
  const std::vector<std::string> sampling{"--sample", "--checkpoint=" + place.checkpoint,
                                          "--prompt=line", "--bytes=5", "--device=cpu"};
  const Ran one = train(sampling), two = train(sampling);
  REQUIRE(one.out == two.out);
  REQUIRE(one.out.substr(0, 4) == "line");
}

TEST_CASE("a sample without temperature takes the likeliest byte", "[train]") {
  Setup setup = small_setup();
  nn::Gpt gpt = begin_training(setup, cpu).gpt;
  gpt.head = from_vector<float>(std::vector<float>(256 * 8, 0));
  gpt.head = reshape(where(arange(256 * 8) >= 'q' * 8, 1.0, 0.0) *
                         where(arange(256 * 8) < 'q' * 8 + 8, 1.0, 0.0),
                     {256, 8});
  gpt.norm.weight = zeros({8});
  gpt.norm.bias = ones({8});
  REQUIRE(sample(gpt, "a", 12, 0, 1, cpu) == "aqqqqqqqqqqqq");
  REQUIRE_THROWS_WITH(sample(gpt, "", 1, 0, 1, cpu), ContainsSubstring("at least one byte"));
  REQUIRE_THROWS_WITH(sample(gpt, "a", 1, -1, 1, cpu), ContainsSubstring("temperature"));
}

TEST_CASE("a training that cannot be says why", "[train]") {
  const Place place;
  const auto problem = [&](const std::vector<std::string>& words) {
    const Ran ran = train(words);
    REQUIRE(ran.code == 1);
    return ran.problems;
  };
  REQUIRE_THAT(problem({"/nowhere/text"}), ContainsSubstring("cannot read /nowhere/text"));
  REQUIRE_THAT(problem({"/etc/hostname"}), ContainsSubstring("need at least 1290"));
  REQUIRE_THAT(problem({"--widht=3"}), ContainsSubstring("no option --widht"));
  REQUIRE_THAT(problem({"--width=x"}), ContainsSubstring("no whole number"));
  REQUIRE_THAT(problem({"--width=30"}), ContainsSubstring("does not divide into --heads=4"));
  REQUIRE_THAT(problem({"--steps=0"}), ContainsSubstring("at least 1"));
  REQUIRE_THAT(problem({"--context=9223372036854775807"}), ContainsSubstring("at most"));
  REQUIRE_THAT(problem({"--bytes=-1"}), ContainsSubstring("at least 0"));
  REQUIRE_THAT(problem({"--rate=nan"}), ContainsSubstring("above 0"));
  REQUIRE_THAT(problem({"--sample", "x"}), ContainsSubstring("reads no text"));
  REQUIRE_THAT(problem({"--device=tpu"}), ContainsSubstring("cpu and cuda"));
  REQUIRE_THAT(problem(place.words({"--resume"})), ContainsSubstring("cannot read"));
  REQUIRE_THAT(problem(place.words({"--steps=9", "--rate=1e30"})),
               ContainsSubstring("in step") && ContainsSubstring("lower --rate") &&
                   ContainsSubstring("no checkpoint was written"));
}

TEST_CASE("a checkpoint of something else, or a damaged one, is refused", "[train]") {
  const Place place, other;
  REQUIRE(train(place.words({"--steps=4"})).code == 0);
  const auto problem = [&](std::vector<std::string> words) {
    const Ran ran = train(words);
    REQUIRE(ran.code == 1);
    return ran.problems;
  };
  REQUIRE_THAT(problem(place.words({"--resume", "--seed=2"})),
               ContainsSubstring("another --seed, 1"));
  std::vector<std::string> words = place.words({"--resume"});
  std::ofstream(words[0] = place.text + "2") << some_text() << "more";
  REQUIRE_THAT(problem(words), ContainsSubstring("reads another text"));
  NamedTensors tensors = load_tensors(place.checkpoint);
  const auto with = [&](const std::string& name, const Tensor& tensor) {
    NamedTensors changed = tensors;
    changed[name] = tensor;
    save_tensors(place.checkpoint, changed);
    return problem(place.words({"--resume"}));
  };
  REQUIRE_THAT(with("gpt.norm.bias", full({8}, NAN)),
               ContainsSubstring("NaN") && ContainsSubstring("gpt.norm.bias"));
  REQUIRE_THAT(with("gpt.norm.bias", zeros({9})), ContainsSubstring("gpt.norm.bias"));
  REQUIRE_THAT(with("setup", zeros({3}, DType::i64)), ContainsSubstring("another version"));
  REQUIRE_THAT(with("setup", full({10}, 1 << 30, DType::i64)),
               ContainsSubstring("another model than its weights"));
  REQUIRE_THAT(with("losses", zeros({2})), ContainsSubstring("4 steps were made"));
  tensors.erase("rates");
  REQUIRE_THAT(with("losses", zeros({2})), ContainsSubstring("lacks 'rates'"));
}

TEST_CASE("a full disk ends a training with what is left of it", "[train]") {
  if (!fs::exists("/dev/full")) SKIP("no /dev/full");
  const Place place;
  fs::create_symlink("/dev/full", place.checkpoint);
  const Ran ran = train(place.words({"--steps=9", "--every=3"}));
  REQUIRE(ran.code == 1);
  REQUIRE_THAT(ran.problems, ContainsSubstring("No space left on device") &&
                                 ContainsSubstring("stopped behind step 3"));
}

TEST_CASE("(a training in a process of its own)", "[.training]") {
  const std::string folder = getenv("TC_TEST_FOLDER");
  std::ofstream out(folder + "told");
  REQUIRE(run_train({folder + "text", "--layers=1", "--width=8", "--heads=2", "--context=8",
                     "--batch=2", "--device=cpu", "--steps=400", "--every=10",
                     "--checkpoint=" + folder + "gpt.safetensors"},
                    out, out) == 0);
}

TEST_CASE("kill -9 costs a training the steps since its last checkpoint", "[train]") {
  const Place whole, place;
  REQUIRE(train(whole.words({"--steps=400", "--every=400"})).code == 0);
  const auto told = [&] { return tests::text_of(place.folder.path("told")); };
  for (const int64_t step : {40, 120, 280}) {
    fs::remove(place.folder.path("told"));
    const tests::Child child = process_of("[.training]", place, false);
    while (last_told(told()) < step && kill(child.pid(), 0) == 0 &&
           told().find("held out:") == std::string::npos)
      usleep(500);
    kill(child.pid(), SIGKILL);
    child.wait();
    const int64_t kept = steps_in(place.checkpoint);
    CAPTURE(told(), kept);
    REQUIRE(kept % 10 == 0);
    REQUIRE(kept >= last_told(told()) - 10);
    REQUIRE(kept >= step - 10);
  }
  REQUIRE(train(place.words({"--resume"})).code == 0);
  REQUIRE(read_text(place.checkpoint) == read_text(whole.checkpoint));
}

TEST_CASE("(a training on a disk that fills up)", "[.filling]") {
  const std::string folder = getenv("TC_TEST_FOLDER"), disk = folder + "disk/";
  const std::string checkpoint = disk + "gpt.safetensors";
  const std::vector<std::string> words{folder + "text", "--resume", "--device=cpu", "--every=5",
                                       "--checkpoint=" + checkpoint};
  fs::copy(folder + "gpt.safetensors", checkpoint);
  std::ofstream filler(disk + "filler");
  while (filler << std::string(4096, 'x') << std::flush) {
  }
  filler.close();
  const std::string before = read_text(checkpoint);
  const Ran ran = train(words);
  REQUIRE(ran.code == 1);
  REQUIRE_THAT(ran.problems, ContainsSubstring("No space left on device") &&
                                 ContainsSubstring("stopped behind step 15") &&
                                 ContainsSubstring("holds step 10: go on with --resume"));
  REQUIRE(read_text(checkpoint) == before);
  fs::remove(disk + "filler");
  REQUIRE(train(words).code == 0);
  REQUIRE(read_text(checkpoint) == read_text(folder + "whole.safetensors"));
}

TEST_CASE("a disk that fills up leaves the last checkpoint, to go on from", "[train]") {
  const Place place;
  REQUIRE(train(place.words({"--steps=20"})).code == 0);
  fs::rename(place.checkpoint, place.folder.path("whole.safetensors"));
  const Corpus corpus = read_corpus({place.text}, ".", 8);
  const Trainer trainer(small_setup(), corpus, cpu);
  Checkpoint half{small_setup(), corpus.mark(), begin_training(small_setup(), cpu)};
  while (half.training.steps_done() < 10) trainer.step(half.training);
  save_checkpoint(place.checkpoint, half);
  fs::create_directory(place.folder.path("disk"));
  const int code = process_of("[.filling]", place, true).wait();
  if (code == tests::kNotAllowed) SKIP("no file system may be mounted");
  REQUIRE(code == 0);
}

TEST_CASE("a loss that becomes NaN stops a training with its checkpoint whole", "[train]") {
  const Place place;
  const Ran ran = train(place.words({"--steps=9", "--every=1", "--rate=1e30", "--decay=0"}));
  REQUIRE(ran.code == 1);
  REQUIRE_THAT(ran.problems, ContainsSubstring("the loss is") &&
                                 ContainsSubstring("lower --rate") &&
                                 ContainsSubstring("go on with --resume"));
  REQUIRE(steps_in(place.checkpoint) >= 1);
}

TEST_CASE("a loss curve as text", "[train]") {
  const float bit = std::log(2.f);
  const LossCurve curve{{3.75f * bit, 3.75f * bit, 2.25f * bit, 2.25f * bit}, {{4, 3.0}}, 2.5};
  const std::string text = curve_text(curve, 8, 3);
  REQUIRE_THAT(text, ContainsSubstring("4.00 | * *"));
  REQUIRE_THAT(text, ContainsSubstring("5-gram 2.50"));
  REQUIRE(curve_text({}, 8, 3).size() > 0);
  REQUIRE_THAT(curve_svg({}), ContainsSubstring("</svg>"));
}

TEST_CASE("any bytes are printable", "[train]") {
  REQUIRE(printable("a\n\x01\x7f\xc3\xa9\xc3") == "a\n??\xc3\xa9?");
  REQUIRE(printable("\xff\xe2\x82\xac\xe2\x82") == "?\xe2\x82\xac??");
}

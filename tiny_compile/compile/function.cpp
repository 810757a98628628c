// When may code be reused? When everything the trace depended on is as it was: each entry holds
// a guard a tensor, and a miss says in words what changed:
//
//   [recompiles] main: input 0: shape [32,784] -> [64,784]
#include "tiny_compile/compile/function.h"

#include <algorithm>

#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/runtime/log.h"

namespace tiny_compile {
namespace {

Guard guard_of(const Tensor& tensor) {
  return {tensor.dtype(), tensor.device(), tensor.shape(), tensor.strides()};
}

// [guards] main: tensor 0 is f32[4,2] with strides [2,1] on cpu
void log_guards(const std::string& name, const std::vector<Guard>& guards) {
  if (!log_enabled("guards")) return;
  for (size_t i = 0; i < guards.size(); i++) {
    const Guard& guard = guards[i];
    log("guards",
        str(name, ": tensor ", i, " is ", guard.dtype, "[", join(guard.shape, ","),
            "] with strides [", join(guard.strides, ","), "] on ", guard.device.str()));
  }
}

const Tensor& current(const Entry& entry, size_t k) {
  return entry.live[k] ? *entry.captured[k].variable : entry.captured[k].tensor;
}

// Lets go of the handles of captured tensors that are not read afresh, to see when all others
// have. What only the function itself made in the trace is gone at once, and never watched.
std::vector<Watch> watch(Entry& entry) {
  std::vector<Watch> watches;
  for (size_t k = 0; k < entry.captured.size(); k++) {
    if (entry.live[k]) continue;
    Tensor& tensor = entry.captured[k].tensor;
    const std::weak_ptr<const TensorData> seen = tensor.handle();
    tensor = Tensor(std::make_shared<TensorData>(tensor.info()));
    if (!seen.expired()) watches.push_back({k, seen});
  }
  return watches;
}

bool is_stale(const Entry& entry, const std::string& name) {
  for (const Watch& watch : entry.watches) {
    if (!watch.seen.expired()) continue;
    log("recompiles", str(name, ": captured tensor ", watch.captured,
                          ": its variable holds another; captured by reference itself, it "
                          "would be read at each call"));
    return true;
  }
  return false;
}

// Strides that a kernel cannot be made for: reversed axes are copied first.
bool needs_copy(const Tensor& tensor) {
  for (int64_t stride : tensor.strides()) {
    if (stride < 0) return true;
  }
  return false;
}

Tensor plain(const Tensor& tensor) {
  return needs_copy(tensor) ? contiguous_copy(tensor) : tensor;
}

std::string first_difference_in_words(const Entry& entry, const Signature& signature) {
  if (signature.tensors.size() + entry.captured.size() != entry.guards.size())
    return "another number of tensors";
  for (size_t i = 0; i < signature.tensors.size(); i++) {
    const std::string difference = entry.guards[i].difference(signature.tensors[i]);
    if (!difference.empty()) return str("input ", i, ": ", difference);
  }
  if (entry.extras != signature.extras)
    return "a number, or the length of a vector, among the arguments";
  for (size_t k = 0; k < entry.captured.size(); k++) {
    const std::string difference =
        entry.guards[signature.tensors.size() + k].difference(current(entry, k));
    if (!difference.empty()) return str("captured tensor ", k, ": ", difference);
  }
  return "";
}

bool admits(const Entry& entry, const Signature& signature) {
  const size_t arguments = signature.tensors.size();
  if (arguments + entry.captured.size() != entry.guards.size()) return false;
  for (size_t i = 0; i < arguments; i++) {
    if (!entry.guards[i].admits(signature.tensors[i])) return false;
  }
  for (size_t k = 0; k < entry.captured.size(); k++) {
    if (!entry.guards[arguments + k].admits(current(entry, k))) return false;
  }
  return entry.extras == signature.extras;
}

}  // namespace

bool Guard::admits(const Tensor& tensor) const {
  const TensorData& data = tensor.info();
  return data.dtype == dtype && data.shape == shape && data.strides == strides &&
         tensor.device() == device;
}

std::string Guard::difference(const Tensor& tensor) const {
  if (tensor.dtype() != dtype) return str("dtype ", dtype, " -> ", tensor.dtype());
  if (tensor.shape() != shape)
    return str("shape [", join(shape, ","), "] -> [", join(tensor.shape(), ","), "]");
  if (tensor.strides() != strides)
    return str("strides [", join(strides, ","), "] -> [", join(tensor.strides(), ","), "]");
  if (tensor.device() != device)
    return str("device ", device.str(), " -> ", tensor.device().str());
  return "";
}

FunctionCache::FunctionCache(CompileOptions options) : options_(std::move(options)) {
  const std::string& backend = options_.backend;
  if (backend == "cuda")
    fail("backend 'cuda': kernels are generated but not yet run on a GPU; use 'cpp'");
  if (backend != "cpp" && backend != "eager" && backend != "interpreter")
    fail("no backend '", backend, "': there are cpp, eager and interpreter");
}

size_t FunctionCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::shared_ptr<const Entry> FunctionCache::find(const Signature& signature) const {
  const std::lock_guard lock(mutex_);
  entries_.remove_if([&](const auto& entry) { return is_stale(*entry, options_.name); });
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (!admits(**it, signature)) continue;
    if (it != entries_.begin()) entries_.splice(entries_.begin(), entries_, it);
    return entries_.front();
  }
  if (!entries_.empty() && log_enabled("recompiles"))
    log("recompiles",
        str(options_.name, ": ", first_difference_in_words(*entries_.front(), signature)));
  return nullptr;
}

std::shared_ptr<const Entry> FunctionCache::add(const Signature& signature,
                                                Specialization specialization) {
  auto entry = std::make_shared<Entry>();
  for (const Tensor& tensor : signature.tensors) entry->guards.push_back(guard_of(tensor));
  for (const Captured& captured : specialization.traced.captured)
    entry->guards.push_back(guard_of(captured.tensor));
  log_guards(options_.name, entry->guards);
  entry->extras = signature.extras;
  entry->captured = std::move(specialization.traced.captured);
  entry->live = std::move(specialization.live);
  specialization.inputs.clear();
  entry->watches = watch(*entry);
  entry->draws = specialization.traced.draws;
  entry->structure = std::move(specialization.structure);
  entry->graph = std::move(specialization.traced.graph);
  if (options_.backend != "interpreter") {
    const Pipeline pipeline = options_.backend == "eager" ? Pipeline{} : options_.pipeline;
    const Staged staged = run_pipeline(pipeline, entry->graph, options_.verify);
    entry->executable = std::make_shared<Executable>(
        staged.program, staged.source, build_cpp(staged.source.text, default_toolchain()));
  }
  const std::lock_guard lock(mutex_);
  entries_.push_front(entry);
  if (entries_.size() > options_.cache_limit) entries_.pop_back();
  return entry;
}

std::vector<Tensor> FunctionCache::run(const Entry& entry, std::vector<Tensor> inputs) const {
  for (size_t k = 0; k < entry.captured.size(); k++) inputs.push_back(current(entry, k));
  if (entry.draws > 0) {
    const auto [seed, first] = reserve_draws(entry.draws);
    inputs.push_back(from_vector<uint64_t>({seed, first}));
  }
  if (!entry.executable) return interpret(entry.graph, inputs);
  for (Tensor& input : inputs) {
    if (needs_copy(input)) input = plain(input);
  }
  return entry.executable->run(inputs);
}

}  // namespace tiny_compile

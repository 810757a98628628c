// When may code be reused? When everything the trace depended on is as it was: each entry holds
// a guard a tensor, and a miss says in words what changed:
//
//   [recompiles] main: input 0: shape [32,784] -> [64,784]
#include "tiny_compile/compile/function.h"

#include <algorithm>
#include <utility>

#include "tiny_compile/compile/bad_index.h"
#include "tiny_compile/compile/build_graph.h"
#include "tiny_compile/compile/call_record.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/graph/lanes.h"
#include "tiny_compile/passes/partition.h"
#include "tiny_compile/passes/passes.h"
#include "tiny_compile/runtime/buffers.h"
#include "tiny_compile/runtime/log.h"
#include "tiny_compile/tensor/cuda_memory.h"

namespace tiny_compile {
namespace {

thread_local double current_budget = 1;

bool is_same(const LayoutPointer& a, const LayoutPointer& b) {
  return a == b || (a->shape == b->shape && a->strides == b->strides);
}

Guard guard_of(const Tensor& tensor) {
  return {tensor.dtype(), tensor.device(), tensor.info().layout, alignment(tensor)};
}

std::vector<Guard> guards_of(const std::vector<Tensor>& tensors) {
  std::vector<Guard> guards;
  for (const Tensor& tensor : tensors) guards.push_back(guard_of(tensor));
  return guards;
}

// [guards] main: tensor 0 is f32[4,2] with strides [2,1] on cpu
void log_guards(const std::string& name, const std::vector<Guard>& guards) {
  if (!log_enabled("guards")) return;
  for (size_t i = 0; i < guards.size(); i++) {
    const Guard& guard = guards[i];
    log("guards",
        str(name, ": tensor ", i, " is ", guard.dtype, "[", join(guard.shape(), ","),
            "] with strides [", join(guard.strides(), ","), "] on ", guard.device.str()));
  }
}

std::vector<Reading> readings(const Specialization& specialization) {
  std::vector<Reading> result;
  for (const Captured& captured : specialization.traced.captured) {
    const bool live =
        result.size() < specialization.live.size() && specialization.live[result.size()];
    result.push_back({captured.variable ? Tensor() : captured.tensor, captured.variable, live,
                      captured.tensor.handle()});
  }
  return result;
}

// Whether a captured tensor's variable is gone, or holds another tensor and is not live.
bool is_stale(const Entry& entry) {
  return std::any_of(entry.captured.begin(), entry.captured.end(), [](const Reading& one) {
    return one.variable && (one.live ? !one.variable->exists() : !one.now());
  });
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
    const Tensor* now = entry.captured[k].now();
    const std::string difference =
        now ? entry.guards[signature.tensors.size() + k].difference(*now)
            : "the variable that held it holds another, or is gone; captured by reference "
              "itself, it would be read without a trace";
    if (!difference.empty()) return str("captured tensor ", k, ": ", difference);
  }
  return "";
}

bool admits(const Entry& entry, const Signature& signature) {
  const size_t arguments = signature.tensors.size();
  if (arguments + entry.captured.size() != entry.guards.size()) return false;
  if (entry.sized && !entry.sized->admits(signature.tensors)) return false;
  for (size_t i = 0; i < arguments && !entry.sized; i++) {
    if (!entry.guards[i].admits(signature.tensors[i])) return false;
  }
  for (size_t k = 0; k < entry.captured.size(); k++) {
    const Tensor* now = entry.captured[k].now();
    if (!now || !entry.guards[arguments + k].admits(*now)) return false;
  }
  return entry.extras == signature.extras;
}

// CPU tensors without axes go along anywhere: a learning rate, a step count.
bool goes_along(const Guard& guard) { return guard.device == cpu && guard.shape().empty(); }

std::string in_words(size_t tensor, size_t arguments) {
  return tensor < arguments ? str("input ", tensor)
                            : str("captured tensor ", tensor - arguments);
}

// Where the function runs. Throws where its tensors are on several devices, or not
// on the backend's.
Device device_of(const Entry& entry, size_t arguments, const CompileOptions& options) {
  const std::string& backend = options.backend;
  const size_t none = entry.guards.size();
  size_t first = none;
  for (size_t i = 0; i < none; i++) {
    if (goes_along(entry.guards[i])) continue;
    if (first == none) first = i;
    const Device one = entry.guards[first].device, other = entry.guards[i].device;
    if (one != other)
      fail(options.name, ": ", in_words(first, arguments), " is on ", one.str(), ", ",
           in_words(i, arguments), " on ", other.str(), ": move one of them with to(...)");
  }
  if (first == none) return backend == "cuda" ? cuda : cpu;
  const Device device = entry.guards[first].device;
  const bool fits = backend == "cpp" ? device == cpu : backend != "cuda" || device != cpu;
  if (!fits)
    fail(options.name, ": backend '", backend, "', but ", in_words(first, arguments), " is on ",
         device.str(), ": move it with to(...), or leave the backend open");
  return device;
}

std::vector<Tensor> interpret_from(const Graph& graph, std::vector<Tensor> inputs,
                                   Device device) {
  for (Tensor& input : inputs) input = on_host(input);
  std::vector<Tensor> outputs = interpret(graph, inputs);
  for (Tensor& output : outputs) output = copy_to(output, device);
  return outputs;
}

void check_mode(const std::string& mode) {
  for (const char* known : {"default", "reduce-overhead", "max-autotune"}) {
    if (mode == known) return;
  }
  fail("no mode '", mode, "': there are default, reduce-overhead and max-autotune");
}

}  // namespace

double memory_budget() { return current_budget; }

MemoryBudget::MemoryBudget(double budget) : before_(std::exchange(current_budget, budget)) {}
MemoryBudget::~MemoryBudget() { current_budget = before_; }

const Tensor* Reading::now() const {
  if (!variable) return &fixed;
  if (!variable->exists()) return nullptr;
  const Tensor& held = **variable;
  const bool same = !seen.owner_before(held.handle()) && !held.handle().owner_before(seen);
  return held.defined() && !held.is_traced() && (live || same) ? &held : nullptr;
}

bool Guard::operator==(const Guard& other) const {
  return dtype == other.dtype && device == other.device && is_same(layout, other.layout) &&
         align == other.align;
}

bool Guard::admits(const Tensor& tensor) const {
  const TensorData& data = tensor.info();
  return data.dtype == dtype && is_same(data.layout, layout) && tensor.device() == device &&
         (device == cpu || alignment(tensor) == align);
}

std::string Guard::difference(const Tensor& tensor) const {
  if (tensor.dtype() != dtype) return str("dtype ", dtype, " -> ", tensor.dtype());
  if (tensor.shape() != shape())
    return str("shape [", join(shape(), ","), "] -> [", join(tensor.shape(), ","), "]");
  if (tensor.strides() != strides())
    return str("strides [", join(strides(), ","), "] -> [", join(tensor.strides(), ","), "]");
  if (tensor.device() != device)
    return str("device ", device.str(), " -> ", tensor.device().str());
  if (alignment(tensor) != align)
    return str("an address that is a multiple of ", align, " bytes -> of ", alignment(tensor));
  return "";
}

FunctionCache::FunctionCache(CompileOptions options) : options_(std::move(options)) {
  check_budget(options_.memory_budget);
  check_mode(options_.mode);
  const std::string& backend = options_.backend;
  for (const char* known : {"", "cpp", "cuda", "eager", "interpreter"}) {
    if (backend == known) return;
  }
  fail("no backend '", backend, "': there are cpp, cuda, eager and interpreter");
}

size_t FunctionCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::shared_ptr<const Entry> FunctionCache::known(const Signature& signature) const {
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (!admits(**it, signature)) continue;
    if (it != entries_.begin()) entries_.splice(entries_.begin(), entries_, it);
    return entries_.front();
  }
  return nullptr;
}

std::shared_ptr<const Entry> FunctionCache::find(const Signature& signature) const {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Entry> entry = known(signature);
  if (!entry && !entries_.empty() && log_enabled("recompiles"))
    log("recompiles",
        str(options_.name, ": ", first_difference_in_words(*entries_.front(), signature)));
  return entry;
}

FunctionCache::Turn::Turn(FunctionCache& cache, const Signature& signature) : cache_(cache) {
  Kind kind{guards_of(signature.tensors), signature.extras};
  std::list<Kind>& others = cache_.being_compiled_;
  std::unique_lock lock(cache_.mutex_);
  cache_.turn_ended_.wait(lock, [&] {
    return (made = cache_.known(signature)) ||
           std::find(others.begin(), others.end(), kind) == others.end();
  });
  mine_ = made ? others.end() : others.insert(others.end(), std::move(kind));
}

FunctionCache::Turn::~Turn() {
  if (made) return;
  {
    const std::lock_guard lock(cache_.mutex_);
    cache_.being_compiled_.erase(mine_);
  }
  cache_.turn_ended_.notify_all();
}

namespace {

std::vector<int> donated_inputs(const Graph& graph) {
  std::vector<int> found;
  const std::vector<int> inputs = graph.inputs();
  for (size_t k = 0; k < inputs.size(); k++) {
    if (graph[inputs[k]].find(Key::donated)) found.push_back(static_cast<int>(k));
  }
  return found;
}

// Those that code for the device cannot read as they are; a guard says so for every call.
std::vector<int> copied_inputs(const Entry& entry) {
  std::vector<int> found;
  const auto is_negative = [](int64_t stride) { return stride < 0; };
  for (size_t k = 0; k < entry.guards.size(); k++) {
    const Guard& guard = entry.guards[k];
    if (guard.device != entry.device ||
        std::any_of(guard.strides().begin(), guard.strides().end(), is_negative))
      found.push_back(static_cast<int>(k));
  }
  const bool draws_elsewhere = entry.draws > 0 && entry.device != cpu;
  if (draws_elsewhere) found.push_back(static_cast<int>(entry.guards.size()));
  return found;
}

void require_one_use(const std::string& name, const std::vector<Tensor>& donated,
                     const std::vector<Tensor>& inputs) {
  for (const Tensor& tensor : donated) {
    const auto uses = std::count_if(inputs.begin(), inputs.end(), [&](const Tensor& input) {
      return input.handle() == tensor.handle();
    });
    if (uses > 1)
      fail(name, ": a tensor ", tensor.dtype(), "[", join(tensor.shape(), ","),
           "] is donated and passed or captured once more in the same call; pass a copy, or do "
           "not donate it");
  }
}

}  // namespace

std::shared_ptr<const Entry> FunctionCache::add(const Signature& signature,
                                                Specialization specialization) {
  auto entry = std::make_shared<Entry>();
  entry->guards = guards_of(signature.tensors);
  for (const Captured& captured : specialization.traced.captured)
    entry->guards.push_back(guard_of(captured.tensor));
  log_guards(options_.name, entry->guards);
  entry->extras = signature.extras;
  entry->captured = readings(specialization);
  entry->draws = specialization.traced.draws;
  entry->structure = std::move(specialization.structure);
  entry->graph = std::move(specialization.traced.graph);
  entry->sized = sized_trace(specialization.traced, signature.tensors);
  entry->donated = donated_inputs(entry->graph);
  entry->device = device_of(*entry, signature.tensors.size(), options_);
  entry->copied = copied_inputs(*entry);
  entry->built = built_for(entry->graph, entry->device);
  const std::lock_guard lock(mutex_);
  entries_.remove_if([](const auto& one) { return is_stale(*one); });
  entries_.push_front(entry);
  if (entries_.size() > options_.cache_limit) entries_.pop_back();
  return entry;
}

// The code of an entry with that graph, or code compiled now.
Built FunctionCache::built_for(const Graph& graph, Device device) const {
  if (options_.backend == "interpreter") return {};
  {
    const std::lock_guard lock(mutex_);
    for (const auto& entry : entries_)
      if (entry->device == device && entry->graph == graph) return entry->built;
  }
  return build_graph(options_, graph, device);
}

std::vector<Tensor> FunctionCache::run(const Entry& entry, std::vector<Tensor> inputs) const {
  inputs.reserve(entry.guards.size() + 1);
  for (const Reading& captured : entry.captured) {
    const Tensor* now = captured.now();
    if (!now) fail(options_.name, ": a captured tensor was replaced during the call");
    inputs.push_back(*now);
  }
  if (entry.draws > 0) {
    const auto [seed, first] = reserve_draws(entry.draws);
    inputs.push_back(from_vector<uint64_t>({seed, first}));
  }
  std::vector<Tensor> donated;
  for (const int k : entry.donated) donated.push_back(inputs[k]);
  require_one_use(options_.name, donated, inputs);
  CallRecord record(entry.graph, inputs);
  std::vector<Tensor> results =
      record.end(entry.built.run ? run_built(entry, std::move(inputs))
                                 : interpret_from(entry.graph, inputs, entry.device));
  for (const Tensor& tensor : donated) {
    if (tensor.handle()->gone.empty())
      take_away(tensor,
                str("was donated to ", options_.name, ": use what that call returned instead"));
  }
  return results;
}

std::vector<Tensor> FunctionCache::run_built(const Entry& entry,
                                             std::vector<Tensor> inputs) const {
  for (const int k : entry.copied) {
    if (inputs[k].device() != entry.device) inputs[k] = copy_to(inputs[k], entry.device);
    if (has_reversed_axes(inputs[k])) inputs[k] = row_major_copy(inputs[k]);
  }
  for (const int k : entry.donated) {  // views of it keep their values
    if (inputs[k].is_contiguous() && inputs[k].info().storage.use_count() > 1)
      inputs[k] = row_major_copy(inputs[k]);
  }
  try {
    return entry.built.run(inputs);
  } catch (const IndexError&) {
    const auto is_gone = [](const Tensor& input) { return !input.handle()->gone.empty(); };
    if (std::any_of(inputs.begin(), inputs.end(), is_gone)) throw;  // nothing to look it up in
    rethrow_index_error(entry.graph, options_.name, inputs);
  }
}

}  // namespace tiny_compile

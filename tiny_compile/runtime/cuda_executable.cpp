// How do kernels run on a GPU? They are put into the stream one after another, or all at once
// where the same call comes again, and the call returns; who reads a result waits for the stream.
// A kernel's mistakes are noted on the device: see cuda_errors.
#include "tiny_compile/runtime/cuda_executable.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <set>

#include "tiny_compile/loops/kernel_key.h"
#include "tiny_compile/runtime/disk_cache.h"
#include "tiny_compile/runtime/log.h"
#include "tiny_compile/runtime/nvrtc.h"
#include "tiny_compile/runtime/side_by_side.h"
#include "tiny_compile/tensor/cuda_memory.h"

namespace tiny_compile {
namespace {

constexpr size_t kMostQuoted = 10000;  // bytes of source, shown with an error
constexpr size_t kMostKept = 64;       // texts of functions that may be gone
constexpr int64_t kShort = 1 << 20;    // bytes that a kernel moves while the next is launched

// Some kernel that is launched may raise an error, and the text has the place for it: that of a
// stage of the user's own may have none.
bool any_can_fail(const Program& program, const Source& source, const CudaLibrary& library) {
  if (!library.has_errors()) return false;
  for (size_t k = 0; k < program.kernels.size(); k++) {
    const Kernel& kernel = program.kernels[k];
    if (!source.kernels[k].library && !row_count(kernel).is_constant(0) && can_fail(kernel))
      return true;
  }
  return false;
}

// The lines of one kernel, numbered as in the whole source.
std::string lines_of_kernel(const std::string& source, const std::string& kernel) {
  const size_t name = source.find(" " + kernel + "(");
  if (name == std::string::npos) return "";
  auto line_at = [&](size_t place) {
    return 1 + std::count(source.data(), source.data() + std::min(place, source.size()), '\n');
  };
  return numbered_lines(source, line_at(name), line_at(source.find("\n}\n", name)) + 1);
}

// A result may be read when its function is gone: the text of the last ones is not.
void keep_a_while(const std::shared_ptr<const std::string>& text) {
  static std::mutex mutex;
  static auto* last = new std::deque<std::shared_ptr<const std::string>>;
  const std::lock_guard lock(mutex);
  last->push_back(text);
  if (last->size() > kMostKept) last->pop_front();
}

// Its kernels' lines, each kernel once, as many as somebody reads.
const CudaMaker* maker_of(const Program& program, const Source& source,
                          const std::shared_ptr<const std::string>& text) {
  std::set<std::string> names;  // equal kernels have one function
  for (const KernelEntry& kernel : source.kernels) {
    if (!kernel.library) names.insert(kernel.function);
    for (const KernelEntry& one : kernel.sized) names.insert(one.function);
  }
  keep_a_while(text);
  auto lines = [names, weak = std::weak_ptr(text)]() -> std::string {
    const std::shared_ptr<const std::string> text = weak.lock();
    if (!text) return "  ... (gone with their function; TC_DEBUG_DIR keeps the whole source)\n";
    std::string numbered;
    for (const std::string& name : names) numbered += lines_of_kernel(*text, name);
    if (numbered.size() <= kMostQuoted) return numbered;
    return numbered.substr(0, numbered.rfind('\n', kMostQuoted)) +
           "\n  ... (TC_DEBUG_DIR keeps the whole source)\n";
  };
  return new CudaMaker{program.name, lines};
}

// The CUBINs of several units as one entry of the cache: before each, its length.
std::string as_entry(const std::vector<std::string>& cubins) {
  if (cubins.size() == 1) return cubins[0];
  std::string entry;
  for (const std::string& cubin : cubins) entry += str(cubin.size(), "\n", cubin);
  return entry;
}

// Nothing where the entry is damaged; behind the last may be what the cache adds.
std::vector<std::string> cubins_of(const std::string& entry, int units) {
  std::vector<std::string> cubins;
  if (units == 1 && !entry.empty()) cubins.push_back(entry);
  if (units == 1) return cubins;
  size_t at = 0;
  for (int u = 0; u < units; u++) {
    const size_t line = entry.find('\n', at);
    if (line == std::string::npos) return {};
    const auto length = static_cast<size_t>(std::atoll(entry.c_str() + at));
    if (length == 0 || length > entry.size() - line - 1) return {};
    cubins.push_back(entry.substr(line + 1, length));
    at = line + 1 + length;
  }
  return cubins;
}

}  // namespace

CudaLibrary::CudaLibrary(const std::vector<std::string>& cubins, int device) : device_(device) {
  CHECK(!cubins.empty(), "no CUBIN to load");
  const CudaScope scope(device);
  for (const std::string& cubin : cubins)
    modules_.emplace_back(driver::load_module(cubin), Unload{device});
  CUmod_st* const first = modules_[0].get();
  const CudaAddress found = driver::find_global(first, "tc_errors");
  if (!found) return;
  const bool hands_over = driver::has_function(first, "tc_hand_over");
  errors_ = std::make_unique<CudaErrors>(
      found, hands_over ? driver::find_function(first, "tc_hand_over") : nullptr, device);
}

void CudaLibrary::Unload::operator()(CudaModule module) const noexcept {
  try {
    const CudaScope scope(device);
    driver::unload_module(module);
  } catch (const Error&) {  // the driver is gone at exit: so is the module
  }
}

CudaFunction CudaLibrary::function(const std::string& name, int64_t shared) const {
  const CudaScope scope(device_);
  const auto in = std::find_if(modules_.begin(), modules_.end(), [&](const auto& module) {
    return driver::has_function(module.get(), name);
  });
  if (in == modules_.end()) fail("no kernel ", name, " has been loaded");
  const CudaFunction function = driver::find_function(in->get(), name);
  if (shared > 0) driver::allow_shared(function, shared);
  return function;
}

std::shared_ptr<const CudaLibrary> load_cubins(const std::vector<std::string>& cubins,
                                               int device) {
  static std::mutex mutex;
  static auto* loaded = new std::map<std::pair<int, std::string>, std::weak_ptr<CudaLibrary>>;
  const std::lock_guard lock(mutex);
  std::erase_if(*loaded, [](const auto& entry) { return entry.second.expired(); });
  std::vector<std::pair<std::string, std::string>> parts;
  for (const std::string& cubin : cubins) parts.push_back({"cubin", cubin});
  std::weak_ptr<CudaLibrary>& known = (*loaded)[{device, content_key(parts)}];
  std::shared_ptr<CudaLibrary> library = known.lock();
  if (!library) known = library = std::make_shared<CudaLibrary>(cubins, device);
  return library;
}

BuiltCubins build_cuda(const Source& source, const std::string& architecture) {
  const std::string directory = cache_directory();
  std::string key;
  if (!directory.empty()) {
    key = content_key({{"cuda source", source.text},
                       {"units", str(source.units)},
                       {"architecture", architecture},
                       {"compiler", nvrtc_identity(directory)}});
    if (const auto path = find_cached(directory, key)) {
      // Nothing where another process removed it meanwhile.
      std::vector<std::string> cubins = cubins_of(read_file(*path), source.units);
      log("cache", str("cuda ", key, cubins.empty() ? ": gone" : ": found"));
      if (!cubins.empty()) return {std::move(cubins), true, 0};
    }
  }
  const auto start = std::chrono::steady_clock::now();
  BuiltCubins built{std::vector<std::string>(static_cast<size_t>(source.units)), false, 0};
  side_by_side(source.units, [&](int u) {
    built.cubins[u] = compile_cuda(source.text, architecture, source.units > 1 ? u : -1);
    return true;
  });
  built.compile_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  store_text(directory, key, as_entry(built.cubins));
  return built;
}

CudaExecutable::CudaExecutable(const Program& program, const Source& source,
                               std::shared_ptr<const CudaLibrary> library,
                               std::vector<IndexUse> uses)
    : text_(std::make_shared<std::string>(source.text)),
      maker_(maker_of(program, source, text_)),
      called_(std::make_shared<CalledProgram>(
          CalledProgram{program.name, kernels_with_chosen_places(program), std::move(uses)})),
      library_(std::move(library)),
      entries_(source.kernels),
      can_fail_(any_can_fail(program, source, *library_)),
      starts_early_(cuda_device(library_->device()).clusters) {
  if (!sizes(program).empty()) {
    prepare(program, source);
    return;
  }
  plan_ = plan_buffers(program);
  std::vector<bool> done(source.kernels.size());  // by a call of the library before it
  for (const std::vector<int>& launch : program.launches) {
    std::vector<int> left;  // of the launch
    for (int id : launch) {
      const KernelEntry& kernel = source.kernels[id];
      if (kernel.library && add_calls(kernel)) done[static_cast<size_t>(kernel.sums)] = true;
      if (!done[static_cast<size_t>(id)]) left.push_back(id);
    }
    for (const Start& start : starts_of(entries_, left)) {
      const KernelEntry& kernel = entries_[start.kernels[0]];
      launches_.emplace_back(Kernel{library_->function(kernel.function, kernel.shared), start});
    }
  }
  if (launches_.size() > 1 || bytes_moved(program) < kShort)
    replay_ = std::make_unique<CudaReplay>(library_->device());
}

// Sizes say how many blocks there are, and where buffers lie.
void CudaExecutable::prepare(const Program& program, const Source& source) {
  plans_ = std::make_unique<const CallPlans>(program, source);
  const auto add = [&](const KernelEntry& entry) {
    if (entry.library) fail(program.name, ": the library's products are of numbers");
    if (!entry.grid.is_constant(0))
      functions_[entry.function] = library_->function(entry.function, entry.shared);
  };
  for (const KernelEntry& entry : source.kernels) {
    add(entry);
    std::for_each(entry.sized.begin(), entry.sized.end(), add);
  }
}

// Whether the call makes another kernel's sums too. Where the library has no algorithm for both,
// it multiplies, and that kernel is launched.
bool CudaExecutable::add_calls(const KernelEntry& kernel) {
  LibraryMatmul matmul = *kernel.library;
  if (kernel.sums >= 0) {
    try {
      launches_.emplace_back(CublasMatmul(matmul, library_->device()));
      return true;
    } catch (const Error& error) {
      log("fusion", str("sums are a kernel of their own: ", error.what()));
    }
    matmul.vector = LibraryVector::None;
    matmul.bias = {};
  }
  for (const LibraryMatmul& call : library_calls(matmul))
    launches_.emplace_back(CublasMatmul(call, library_->device()));
  return false;
}

// One for all matmuls: the stream runs them in turn. Null where none needs any.
std::shared_ptr<Storage> CudaExecutable::make_workspace(
    const std::vector<void*>& addresses) const {
  size_t bytes = 0;
  for (const auto& launch : launches_) {
    if (const auto* matmul = std::get_if<CublasMatmul>(&launch))
      bytes = std::max(bytes, matmul->workspace(addresses));
  }
  if (bytes == 0) return nullptr;
  try {
    return allocate_cuda(bytes, library_->device());
  } catch (const Error& error) {
    fail(name(), ", compiled: the workspace of its matmuls: ", error.what());
  }
}

void CudaExecutable::start(const std::vector<void*>& addresses, void* workspace) const {
  std::vector<const void*> arguments;
  std::vector<int64_t> table;
  bool behind = false;  // a kernel of the same call, which lets the next one start
  for (const auto& launch : launches_) {
    if (const auto* matmul = std::get_if<CublasMatmul>(&launch)) {
      matmul->run(addresses, workspace);
      behind = false;
      continue;
    }
    const Kernel& kernel = std::get<Kernel>(launch);
    const KernelEntry& entry = entries_[kernel.start.kernels[0]];
    arguments.clear();
    if (entry.room > 0) {
      table = table_of(entries_, kernel.start, addresses);
      arguments.push_back(table.data());
    } else {
      for (int buffer : entry.buffers) arguments.push_back(&addresses[buffer]);
    }
    start_kernel(kernel.function, kernel.start.grid, entry, arguments.data(), behind);
    behind = true;
  }
}

void CudaExecutable::start(const CallPlan& plan, const std::vector<void*>& addresses) const {
  std::vector<const void*> arguments;
  bool behind = false;
  for (const CallPlan::Kernel& kernel : plan.kernels) {
    if (kernel.entry.grid.is_constant(0)) continue;
    arguments.clear();
    for (int buffer : kernel.entry.buffers) arguments.push_back(&addresses[buffer]);
    for (const long long& size : kernel.sizes) arguments.push_back(&size);
    start_kernel(functions_.at(kernel.entry.function), kernel.entry.grid.constant(),
                 kernel.entry, arguments.data(), behind);
    behind = true;
  }
}

void CudaExecutable::start_kernel(CudaFunction function, int64_t grid, const KernelEntry& entry,
                                  const void** arguments, bool behind) const {
  try {
    driver::launch(function, grid, entry.block, entry.shared, cuda_stream(library_->device()),
                   const_cast<void**>(arguments), behind && entry.early && starts_early_);
  } catch (const Error& error) {
    fail(error.what(), "\nof ", entry.function, " by ", grid, " blocks of ", entry.block,
         " threads with ", entry.shared, " bytes asked for; the source:\n",
         lines_of_kernel(*text_, entry.function));
  }
}

void CudaExecutable::start_call(const std::vector<void*>& addresses, void* workspace,
                                const CallPlan* sized, bool has_outcome) const {
  // Recorded with the kernels: a launch of its own behind a recording is one thing more that the host asks for. (H200,
  // calls one after the other: 2.4 us of a kernel in a recording, 2.9 of both in it, 7.8 of one behind it.)
  const auto start_all = [&] {
    if (sized)
      start(*sized, addresses);
    else
      start(addresses, workspace);
    if (has_outcome) library_->errors().hand_over();
  };
  try {
    if (has_outcome) library_->errors().prepare();
    if (replay_)
      replay_->run(addresses, start_all);
    else
      start_all();
  } catch (const Error& error) {  // some may have started
    if (can_fail_) library_->errors().forget();
    fail(name(), ", compiled: ", error.what());
  }
}

std::vector<Tensor> CudaExecutable::run(std::span<const Tensor> inputs) const {
  if (!plans_) return run(plan_, inputs, nullptr);
  const std::shared_ptr<const CallPlan> plan = plans_->of(inputs);
  return run(plan->buffers, laid_out(*plan, inputs), plan.get());
}

std::vector<Tensor> CudaExecutable::run(const BufferPlan& plan, std::span<const Tensor> inputs,
                                        const CallPlan* sized) const {
  const int device = library_->device();
  const CudaScope scope(device);
  CudaQueue* const queue = cuda_queue(device);
  use_in(queue, inputs);
  Outcomes outcomes;  // of all that the results are made of
  for (const Tensor& input : inputs) add_outcomes(outcomes, cuda_storage(input).outcomes);
  const auto allocate = [&](size_t bytes) { return allocate_cuda(bytes, device, queue); };
  BufferSet buffers = make_buffers(plan, inputs, allocate, name(),
                                   take_cached_cuda(plan.new_bytes, device, queue));
  const std::shared_ptr<Storage> workspace = make_workspace(buffers.addresses);
  void* const work = workspace ? workspace->data() : nullptr;
  if (work) buffers.addresses.push_back(work);
  Overwriting overwriting(plan, inputs, name());
  // What is recorded for a graph of the caller's has not been run yet, and can be run often.
  const bool recording = can_fail_ && driver::is_recording(cuda_stream(device)),
             has_outcome = can_fail_ && !recording;
  std::unique_lock<std::mutex> turn;
  if (can_fail_) turn = library_->errors().turn(queue);
  start_call(buffers.addresses, work, sized, has_outcome);
  if (recording) library_->errors().forget();
  if (has_outcome) outcomes.push_back(library_->errors().outcome(called_));
  for (const Tensor& tensor : buffers.made) {
    cuda_storage(tensor).maker = maker_;
    cuda_storage(tensor).outcomes = outcomes;
  }
  overwriting.ended_well();
  return results_of(plan, inputs, std::move(buffers));
}

}  // namespace tiny_compile

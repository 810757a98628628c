// How is a matmul given to the vendor's library? What it needs to be told (dtypes, orientation,
// epilogue, batches) becomes descriptors, once; the library's heuristic then names an algorithm
// for the alignment of the operands, and a call is one function with their addresses.
//
//   f32 192x16x64, A transposed, + bias  =>  op A = T, epilogue BIAS, layouts [64 x 192] ld 64,
//                                            [64 x 16] ld 64, [192 x 16] ld 192
//
// Sums are f32 (f64 for f64) to the end: algorithms that add halves in half width are excluded.
#include "tiny_compile/runtime/cublaslt.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "tiny_compile/base/error.h"
#include "tiny_compile/base/optional_library.h"
#include "tiny_compile/runtime/cublaslt_api.h"
#include "tiny_compile/tensor/cuda_memory.h"
#include "tiny_compile/tensor/cuda_stream.h"

namespace tiny_compile {
namespace {

namespace lt = cublaslt;

constexpr uint64_t kMostWorkspace = 32 << 20;  // what a Hopper's algorithms ask for
constexpr uint64_t kBestAlignment = 256;       // bytes; more makes no difference to it
constexpr int kCandidates = 4, kMostCandidates = 16;
constexpr int64_t kSideBySide = 4;      // calls from which on they take turns in two streams,
constexpr int64_t kFewWaves = 1 << 26;  // of a call's results at most: 2048 tiles of 128 x 256,
constexpr int64_t kWorthwhile = 1 << 23;  // and of all elements at least: some microseconds

struct Library : lt::Functions {
  OptionalLibrary library{{"libcublasLt.so", "libcublasLt.so.13", "libcublasLt.so.12"}};
  std::string problem;

  Library() {
    if (!library.found()) {
      problem = "cuBLASLt is missing: " + library.problem();
      return;
    }
    try {
#define X(member, symbol, parameters) library.find(member, #symbol);
      TC_CUBLASLT_FUNCTIONS(X)
#undef X
      library.find(version, "cublasLtGetVersion");
      library.find(status, "cublasLtGetStatusString");
    } catch (const Error& error) {
      problem = error.what();
    }
  }
};

const Library& library() {
  static const Library opened;  // the library, not a state of ours
  return opened;
}

const Library& needed() {
  if (!library().problem.empty())
    fail(library().problem, ". Install the CUDA Toolkit, set CUDA_HOME to where it is, or ",
         "compile with deterministic = true, which uses generated kernels");
  return library();
}

// A failure names the call and the matmul it was for.
void check(int result, const char* call, const LibraryMatmul& matmul) {
  if (result != 0)
    fail("cuBLASLt: ", call, ": ", needed().status(result), ", for ", str(matmul));
}

// One a device, made when it is first asked for; they live as long as the process.
struct Handles {
  std::mutex mutex;
  std::map<int, lt::Handle> made;
};

lt::Handle handle_of(int device) {
  static Handles* const handles = new Handles;
  const std::lock_guard lock(handles->mutex);
  lt::Handle& handle = handles->made[device];
  if (handle) return handle;
  const CudaScope scope(device);
  const int result = needed().create(&handle);
  if (result != 0)
    fail("cuBLASLt does not start on cuda:", device, ": ", needed().status(result));
  return handle;
}

struct Destroy {
  void operator()(lt::OperationOpaque* it) const { library().operation_destroy(it); }
  void operator()(lt::LayoutOpaque* it) const { library().layout_destroy(it); }
  void operator()(lt::PreferenceOpaque* it) const { library().preference_destroy(it); }
};
template <typename Opaque>
using Owned = std::unique_ptr<Opaque, Destroy>;
using OwnedLayout = Owned<lt::LayoutOpaque>;

int type_of(DType dtype) {
  switch (dtype) {
    case DType::f16: return lt::kR16F;
    case DType::bf16: return lt::kR16BF;
    case DType::f64: return lt::kR64F;
    default: return lt::kR32F;
  }
}

int epilogue_of(const LibraryMatmul& matmul) {
  static constexpr int kActivations[] = {0, lt::kEpilogueRelu, lt::kEpilogueGelu,
                                         lt::kEpilogueGeluGradient};
  static constexpr int kVectors[] = {0, lt::kEpilogueBias, lt::kEpilogueSumsOfD,
                                     lt::kEpilogueSumsOfA, lt::kEpilogueSumsOfB};
  const int bits = kActivations[static_cast<int>(matmul.activation)] |
                   kVectors[static_cast<int>(matmul.vector)] |
                   (matmul.saved.buffer >= 0 ? lt::kEpilogueSaved : 0);
  return bits == 0 ? lt::kEpilogueDefault : bits;
}

// Where the operands lie at one call.
struct Operands {
  std::byte *a, *b, *d, *bias, *saved;
};

std::byte* address(std::span<void* const> addresses, const LibraryMatrix& matrix,
                   int64_t elements = 0) {
  if (matrix.buffer < 0) return nullptr;
  return static_cast<std::byte*>(addresses[static_cast<size_t>(matrix.buffer)]) +
         (matrix.offset + elements) * size_of(matrix.dtype);
}

// The largest power of two, up to kBestAlignment, that divides every address.
uint64_t alignment_of(const LibraryMatmul& matmul, const Operands& at) {
  uint64_t bits = kBestAlignment;
  for (const std::byte* address : {at.a, at.b, at.d, at.bias, at.saved})
    bits |= reinterpret_cast<uint64_t>(address);
  for (size_t k = 1; k < matmul.batches.size(); k++) {
    const LibraryBatch& batch = matmul.batches[k];
    bits |= static_cast<uint64_t>(batch.a | batch.b) * size_of(matmul.a.dtype);
    bits |= static_cast<uint64_t>(batch.d) * size_of(matmul.d.dtype);
  }
  return bits & (~bits + 1);
}

struct Plan {
  uint64_t alignment;
  lt::Algorithm algorithm;
  size_t workspace;
};

// What was chosen in this process: twelve layers ask for the same six matmuls, 0.2 ms each time.
struct Choices {
  struct Choice {
    int device;
    LibraryMatmul matmul;
    Plan plan;
  };
  std::mutex mutex;
  std::vector<Choice> made;
};

Choices& choices() {
  static Choices* const instance = new Choices;
  return *instance;
}

// The same matmul wherever its operands lie.
LibraryMatmul anywhere(LibraryMatmul matmul) {
  for (LibraryMatrix* matrix : {&matmul.a, &matmul.b, &matmul.d, &matmul.bias, &matmul.saved}) {
    matrix->buffer = std::min(matrix->buffer, 0);
    matrix->offset = 0;
  }
  return matmul;
}

// --- what the library is told ----------------------------------------------------------------

// A matmul as the library knows it.
struct Described {
  LibraryMatmul matmul;
  int device;
  lt::Handle handle;
  float alpha32;
  OwnedLayout layout_a{}, layout_b{}, layout_d{};
  Owned<lt::OperationOpaque> operation{};  // its pointers change from call to call
};

OwnedLayout layout_of(const LibraryMatmul& matmul, const LibraryMatrix& matrix, int64_t rows,
                      int64_t columns, int64_t count, int64_t stride) {
  lt::Layout made = nullptr;
  check(needed().layout_create(&made, type_of(matrix.dtype), static_cast<uint64_t>(rows),
                               static_cast<uint64_t>(columns), matrix.ld),
        "cublasLtMatrixLayoutCreate", matmul);
  OwnedLayout owned(made);
  if (count == 1) return owned;
  const int32_t batches = static_cast<int32_t>(count);
  check(needed().layout_set(made, lt::kLayoutBatch, &batches, sizeof batches), "batch count",
        matmul);
  check(needed().layout_set(made, lt::kLayoutStride, &stride, sizeof stride), "batch stride",
        matmul);
  return owned;
}

template <typename Value>
void set(const Described& p, int attribute, const Value& value) {
  check(needed().operation_set(p.operation.get(), attribute, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute", p.matmul);
}

void make_operation(Described& p, const LibraryBatch& batch) {
  const LibraryMatmul& matmul = p.matmul;
  const bool f64 = matmul.a.dtype == DType::f64;
  const int compute = f64 ? lt::kCompute64F : matmul.tf32 ? lt::kComputeTf32 : lt::kCompute32F;
  lt::Operation made = nullptr;
  check(needed().operation_create(&made, compute, f64 ? lt::kR64F : lt::kR32F),
        "cublasLtMatmulDescCreate", matmul);
  p.operation.reset(made);
  const int32_t transpose = lt::kTranspose, epilogue = epilogue_of(matmul);
  if (matmul.a.transposed) set(p, lt::kOperationTransA, transpose);
  if (matmul.b.transposed) set(p, lt::kOperationTransB, transpose);
  set(p, lt::kOperationEpilogue, epilogue);
  if (matmul.saved.buffer < 0) return;
  set(p, lt::kOperationSavedLd, matmul.saved.ld);
  set(p, lt::kOperationSavedStride, batch.d);
}

Described described(const LibraryMatmul& matmul, int device) {
  Described p{matmul, device, handle_of(device), static_cast<float>(matmul.alpha)};
  const LibraryMatrix &a = matmul.a, &b = matmul.b, &d = matmul.d;
  const LibraryBatch batch = matmul.batches.empty() ? LibraryBatch{} : matmul.batches[0];
  p.layout_a = layout_of(matmul, a, a.transposed ? matmul.k : matmul.m,
                         a.transposed ? matmul.m : matmul.k, batch.count, batch.a);
  p.layout_b = layout_of(matmul, b, b.transposed ? matmul.n : matmul.k,
                         b.transposed ? matmul.k : matmul.n, batch.count, batch.b);
  p.layout_d = layout_of(matmul, d, matmul.m, matmul.n, batch.count, batch.d);
  make_operation(p, batch);
  return p;
}

void set_pointers(const Described& p, const Operands& at) {
  if (at.bias) set(p, lt::kOperationBias, at.bias);
  if (at.saved) set(p, lt::kOperationSaved, at.saved);
}

// --- how it multiplies -----------------------------------------------------------------------

// False, and it is as it was, where it cannot be so.
bool split(const Described& p, lt::Heuristic& chosen, int parts) {
  lt::Heuristic tried = chosen;
  const uint32_t reductions = lt::kReduceInComputeType;
  const Library& lib = needed();
  const bool possible =
      lib.algorithm_set(&tried.algorithm, lt::kAlgorithmSplitK, &parts, sizeof parts) == 0 &&
      lib.algorithm_set(&tried.algorithm, lt::kAlgorithmReductions, &reductions,
                        sizeof reductions) == 0;
  const lt::Algorithm algorithm = tried.algorithm;
  if (!possible ||
      lib.algorithm_check(p.handle, p.operation.get(), p.layout_a.get(), p.layout_b.get(),
                          p.layout_d.get(), p.layout_d.get(), &algorithm, &tried) != 0 ||
      tried.state != 0 || tried.workspace > kMostWorkspace)
    return false;
  chosen.algorithm = algorithm;
  chosen.workspace = tried.workspace;
  return true;
}

// As its schedule says. That must be possible for the best alignment; for a lesser one, which only a
// call shows, the first will do.
Plan scheduled(const Described& p, const std::vector<lt::Heuristic>& found,
               uint32_t alignment) {
  lt::Heuristic chosen = found[0];
  const size_t number = static_cast<size_t>(p.matmul.algorithm);
  if (number < found.size()) chosen = found[number];
  const bool possible =
      number < found.size() && (p.matmul.split_k == 0 || split(p, chosen, p.matmul.split_k));
  if (!possible && alignment == kBestAlignment)
    fail("cuBLASLt, which has ", found.size(), " algorithms, cannot do ", str(p.matmul),
         ": leave algorithm= and split_k= out of its schedule");
  return {alignment, chosen.algorithm, chosen.workspace};
}

Plan choose(const Described& p, uint32_t alignment) {
  lt::Preference made = nullptr;
  check(needed().preference_create(&made), "cublasLtMatmulPreferenceCreate", p.matmul);
  const Owned<lt::PreferenceOpaque> preference(made);
  auto prefer = [&](int attribute, const auto& value) {
    check(needed().preference_set(made, attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute", p.matmul);
  };
  const uint32_t reductions = lt::kReduceInComputeType;
  prefer(lt::kPreferWorkspace, kMostWorkspace);
  prefer(lt::kPreferReductions, reductions);
  for (int attribute : {lt::kPreferAlignmentA, lt::kPreferAlignmentB, lt::kPreferAlignmentC,
                        lt::kPreferAlignmentD})
    prefer(attribute, alignment);
  const int most = p.matmul.algorithm > 0 ? kMostCandidates : kCandidates;
  std::vector<lt::Heuristic> found(static_cast<size_t>(most));
  int count = 0;
  const int result =
      needed().heuristic(p.handle, p.operation.get(), p.layout_a.get(), p.layout_b.get(),
                         p.layout_d.get(), p.layout_d.get(), made, most, found.data(), &count);
  found.resize(static_cast<size_t>(result == 0 ? count : 0));
  std::erase_if(found, [](const lt::Heuristic& one) { return one.state != 0; });
  if (found.empty())
    fail("cuBLASLt has no algorithm (", needed().status(result), ") for ", str(p.matmul),
         "; compile with deterministic = true, which uses generated kernels");
  return scheduled(p, found, alignment);
}

// --- calls -----------------------------------------------------------------------------------

// Heads of an attention, say, whose last blocks leave multiprocessors idle until the next call.
bool takes_turns(const LibraryMatmul& matmul) {
  const int64_t batch = matmul.batches.empty() ? 1 : matmul.batches[0].count,
                elements = batch * (matmul.m * matmul.n + matmul.k * (matmul.m + matmul.n));
  return matmul.calls() >= kSideBySide && matmul.m * matmul.n * batch <= kFewWaves &&
         matmul.calls() * elements >= kWorthwhile;
}

size_t room_of(const Plan& plan) {
  return (plan.workspace + kBestAlignment - 1) / kBestAlignment * kBestAlignment;
}

Operands operands(const LibraryMatmul& matmul, std::span<void* const> addresses, int64_t a,
                  int64_t b, int64_t d) {
  return {address(addresses, matmul.a, a), address(addresses, matmul.b, b),
          address(addresses, matmul.d, d), address(addresses, matmul.bias),
          address(addresses, matmul.saved, d)};
}

Operands operands_of(const LibraryMatmul& matmul, std::span<void* const> addresses,
                     int64_t call) {
  int64_t a = 0, b = 0, d = 0;
  for (size_t k = matmul.batches.size(); k-- > 1;) {
    const LibraryBatch& batch = matmul.batches[k];
    const int64_t at = call % batch.count;
    a += at * batch.a, b += at * batch.b, d += at * batch.d;
    call /= batch.count;
  }
  return operands(matmul, addresses, a, b, d);
}

void multiply(const Described& p, const Plan& plan, const Operands& at, void* workspace,
              CudaStream stream) {
  const double zero = 0;  // of either width
  const bool f64 = p.matmul.a.dtype == DType::f64;
  const void* alpha =
      f64 ? static_cast<const void*>(&p.matmul.alpha) : static_cast<const void*>(&p.alpha32);
  check(needed().matmul(p.handle, p.operation.get(), alpha, at.a, p.layout_a.get(), at.b,
                        p.layout_b.get(), &zero, at.d, p.layout_d.get(), at.d, p.layout_d.get(),
                        &plan.algorithm, workspace, plan.workspace, stream),
        "cublasLtMatmul", p.matmul);
}

}  // namespace

struct CublasMatmul::State {
  State(const LibraryMatmul& matmul, int device) : told(described(matmul, device)) {
    std::byte* const some = reinterpret_cast<std::byte*>(kBestAlignment);
    plan_for(kBestAlignment,  // what cannot be done is known before the first call
             {some, some, some, matmul.bias.buffer < 0 ? nullptr : some,
              matmul.saved.buffer < 0 ? nullptr : some});
  }

  // For operands so aligned; `at` are such.
  const Plan& plan_for(uint64_t alignment, const Operands& at) {
    for (const Plan& plan : plans) {
      if (plan.alignment == alignment) return plan;
    }
    const LibraryMatmul wanted = anywhere(told.matmul);
    const std::lock_guard lock(choices().mutex);
    std::vector<Choices::Choice>& made = choices().made;
    const auto known = std::find_if(made.begin(), made.end(), [&](const Choices::Choice& one) {
      return one.device == told.device && one.plan.alignment == alignment &&
             one.matmul == wanted;
    });
    if (known != made.end()) return plans.emplace_back(known->plan);
    set_pointers(told, at);
    const Plan plan = choose(told, static_cast<uint32_t>(alignment));
    made.push_back({told.device, wanted, plan});
    return plans.emplace_back(plan);
  }

  size_t workspace(std::span<void* const> addresses) {
    const std::lock_guard lock(mutex);
    const Operands first = operands(told.matmul, addresses, 0, 0, 0);
    return (takes_turns(told.matmul) ? 2 : 1) *
           room_of(plan_for(alignment_of(told.matmul, first), first));
  }

  // One call of the library a place of the outer batches; where they take turns each second one in a
  // stream and a workspace of its own.
  void run(std::span<void* const> addresses, void* workspace) {
    const std::lock_guard lock(mutex);
    const LibraryMatmul& matmul = told.matmul;
    const Operands first = operands(matmul, addresses, 0, 0, 0);
    const Plan& plan = plan_for(alignment_of(matmul, first), first);
    std::optional<CudaBranch> branch;
    if (takes_turns(matmul)) branch.emplace(told.device);
    for (int64_t call = 0; call < matmul.calls(); call++) {
      const bool aside = branch && call % 2 == 1;
      const Operands now = operands_of(matmul, addresses, call);
      set_pointers(told, now);
      multiply(
          told, plan, now,
          workspace && aside ? static_cast<std::byte*>(workspace) + room_of(plan) : workspace,
          aside ? branch->stream() : cuda_stream(told.device));
    }
    if (branch) branch->join();
  }

  const Described told;
  std::mutex mutex;         // of the operation's pointers, too
  std::vector<Plan> plans;  // of each alignment met
};

CublasMatmul::CublasMatmul(const LibraryMatmul& matmul, int device)
    : state_(std::make_unique<State>(matmul, device)) {}
CublasMatmul::~CublasMatmul() = default;
CublasMatmul::CublasMatmul(CublasMatmul&&) noexcept = default;

size_t CublasMatmul::workspace(std::span<void* const> addresses) const {
  return state_->workspace(addresses);
}

void CublasMatmul::run(std::span<void* const> addresses, void* workspace) const {
  state_->run(addresses, workspace);
}

std::string why_no_cublaslt() { return library().problem; }

std::string cublaslt_identity() { return str("cuBLASLt ", needed().version()); }

Matmul available_matmul(Matmul wanted) {
  if (wanted == Matmul::Generated || library().problem.empty()) return wanted;
  static std::once_flag said;
  std::call_once(said, [] {
    std::fprintf(stderr,
                 "tiny_compile: matmuls are generated kernels, several times slower than "
                 "cuBLASLt's: %s. "
                 "With deterministic = true they are always, and nothing is said\n",
                 library().problem.c_str());
  });
  return Matmul::Generated;
}

}  // namespace tiny_compile

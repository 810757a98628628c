// Does the verifier refuse every Program that is not sound?
//
//   random graph => Program => text => mutated text => verify: refused, or the same bits twice
#include "tests/fuzz/programs.h"
#include "tests/codegen/emit_programs.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <random>

#include "tests/fuzz/mutate.h"
#include "tiny_compile/codegen/cpp.h"
#include "tiny_compile/loops/in_place.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/runtime/cuda_executable.h"
#include "tiny_compile/tensor/cuda_memory.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostBytes = 4 << 20, kMostPoints = 200000;

// Bytes between two pages that may not be touched: behind the first, or before the second.
class Fenced {
 public:
  Fenced(size_t bytes, bool at_end, size_t align, unsigned char unwritten) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t room = (bytes + page - 1) / page * page;
    all_ = room + 2 * page;
    memory_ = static_cast<std::byte*>(
        mmap(nullptr, all_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory_ == MAP_FAILED) fail("no memory for a fenced buffer of ", bytes, " bytes");
    std::memset(memory_, unwritten, all_);
    mprotect(memory_, page, PROT_NONE);
    mprotect(memory_ + page + room, page, PROT_NONE);
    data_ = memory_ + page + (at_end ? (room - bytes) / align * align : 0);
  }
  Fenced(const Fenced&) = delete;
  ~Fenced() { munmap(memory_, all_); }
  std::byte* data() const { return data_; }

 private:
  std::byte *memory_, *data_;
  size_t all_;
};

bool is_too_large(const Program& program) {
  int64_t bytes = program.arena_bytes, points = 0;
  for (const Buffer& buffer : program.buffers) {
    Wide elements = 1;  // of an input with strides of 0 more than its buffer has
    for (const Expr& size : buffer.type.shape)
      elements = std::min<Wide>(elements * size.bounds().high, kMostBytes);
    bytes += std::max(static_cast<int64_t>(elements),
                      std::min<int64_t>(buffer.size.bounds().high, kMostBytes)) *
             8;
  }
  for (const Kernel& kernel : program.kernels) {
    for (const Step& step : kernel.steps) {
      Wide all = 1;
      for (int row = 0; row < kernel.rows; row++)
        all = std::min<Wide>(all * kernel.axes[row].extent.bounds().high, kUnbounded);
      for (int axis : step.inner)
        all = std::min<Wide>(all * kernel.axes[axis].extent.bounds().high, kUnbounded);
      points += static_cast<int64_t>(std::min<Wide>(all, kMostPoints));
    }
  }
  return bytes > kMostBytes || points > kMostPoints;
}

Literal drawn(std::mt19937_64& random, DType dtype) {
  static constexpr double kOdd[] = {0.0, -0.0, __builtin_inf(), -__builtin_inf(),
                                    __builtin_nan("")};
  if (dtype == DType::boolean) return Literal::of(dtype, random() % 2);
  if (!is_float(dtype)) return Literal::of_integer(dtype, static_cast<int64_t>(random() % 7));
  if (random() % 16 == 0) return Literal::of(dtype, kOdd[random() % 5]);
  return Literal::of(dtype, static_cast<double>(random() % 4001) / 500 - 4);
}

// As the buffer lays them out.
std::vector<Tensor> drawn_inputs(const Program& program, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Tensor> inputs;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.role != Role::Input) continue;
    const DType dtype = buffer.type.dtype;
    Tensor flat = empty_tensor(dtype, {buffer.size.constant()});
    for (int64_t i = 0; i < flat.numel(); i++) {
      const Literal value = drawn(random, dtype);
      std::memcpy(flat.bytes() + i * size_of(dtype), &value.bits, size_of(dtype));
    }
    Sizes shape, strides;
    for (const Expr& size : buffer.type.shape) shape.push_back(size.constant());
    for (const Expr& stride : buffer.strides) strides.push_back(stride.constant());
    inputs.push_back(with_layout(flat, shape,
                                 strides.empty() ? contiguous_strides(shape) : strides,
                                 buffer.offset.constant()));
  }
  return inputs;
}

struct Mutant {
  uint64_t seed;
  Program program;
  std::vector<Tensor> inputs, want;
  bool raises;  // an index out of range, or a division by zero
};

bool is_raised(const std::string& error) {
  return error.find("reads element") == std::string::npos &&
         error.find("writes element") == std::string::npos;
}

// The outputs, nullopt where the kernels raise errors.
std::optional<std::vector<Tensor>> run_fenced(const Mutant& mutant, const Source& source,
                                              const SharedLibrary& library, bool at_end) {
  const Program& program = mutant.program;
  const unsigned char unwritten = at_end ? 0x5a : 0xc3;
  const Fenced arena(static_cast<size_t>(program.arena_bytes), at_end, 16, unwritten);
  std::vector<std::unique_ptr<Fenced>> memory;
  std::vector<void*> addresses;
  size_t next = 0;
  for (const Buffer& buffer : program.buffers) {
    const bool input = buffer.role == Role::Input;
    const size_t width = size_of(buffer.type.dtype);
    memory.push_back(
        std::make_unique<Fenced>(bytes_of(buffer), at_end, input ? width : 16, unwritten));
    if (input)
      std::memcpy(memory.back()->data(),
                  mutant.inputs[next++].bytes() -
                      buffer.offset.constant() * static_cast<int64_t>(width),
                  bytes_of(buffer));
    addresses.push_back(buffer.place >= 0 ? arena.data() + buffer.place
                                          : memory.back()->data());
  }
  for (size_t b = 0; b < addresses.size(); b++)
    addresses[b] = addresses[storage_of(program, static_cast<int>(b))];
  std::vector<std::unique_ptr<Fenced>> owned;
  const auto own = [&](size_t bytes, size_t) {  // all of them are zeros
    owned.push_back(std::make_unique<Fenced>(bytes, false, 64, 0));
    return owned.back()->data();
  };
  if (run_launches(program, source, library, addresses, own)) return std::nullopt;
  return outputs_at(program, addresses);
}

FuzzFailure failure_of(uint64_t seed, const std::string& what) {
  return {seed, what, mutant(seed)};
}

// What is wrong with a mutant's results, "" if nothing.
std::string difference(const Mutant& mutant, const std::optional<std::vector<Tensor>>& got) {
  if (mutant.raises != !got) return mutant.raises ? "raises no error" : "raises an error";
  for (size_t k = 0; got && k < got->size(); k++) {
    if (!same_bits(mutant.want[k], (*got)[k])) return str("output ", k, " differs");
  }
  return "";
}

// Those of the verifier's mutants that can be run on `target`, interpreted.
std::vector<Mutant> accepted_mutants(uint64_t first, int count, Target target,
                                     MutantCounts& counts, const std::set<uint64_t>& skip,
                                     const std::function<void(uint64_t)>& begin,
                                     std::vector<FuzzFailure>& failures) {
  std::vector<Mutant> accepted;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(count); seed++) {
    if (skip.count(seed)) continue;
    begin(seed);
    counts.made++;
    Mutant one{seed, {}, {}, {}, false};
    try {
      one.program = parse_program(mutant(seed));
    } catch (const Error&) {
      counts.refused++;
      continue;
    }
    if (is_too_large(one.program)) {
      counts.too_large++;
      continue;
    }
    const bool scheduled_for_another = one.program.target != target;
    try {
      if (one.program.target == Target::Cuda) emit_cuda(one.program);
      one.program = for_machine(std::move(one.program), default_machine(target));
      verify(one.program);
    } catch (const Error& error) {
      if (!scheduled_for_another) failures.push_back(failure_of(seed, error.what()));
      counts.too_large += scheduled_for_another;
      continue;
    }
    one.inputs = drawn_inputs(one.program, seed);
    try {
      one.want = interpret(one.program, one.inputs);
    } catch (const Error& error) {
      one.raises = is_raised(error.what());
      if (!one.raises) {
        failures.push_back(failure_of(seed, error.what()));
        continue;
      }
    }
    accepted.push_back(std::move(one));
  }
  return accepted;
}

// What is wrong with accepted mutant k, "" if nothing.
using Check = std::function<std::string(size_t k)>;

// Those that run on `target`, built together by `build` and checked one by one.
std::vector<FuzzFailure> fuzz_on(
    Target target, uint64_t first, int number, MutantCounts& counts,
    const std::set<uint64_t>& skip, const std::function<void(uint64_t)>& begin,
    const std::function<Check(const std::vector<Mutant>&, const std::vector<Program>&)>&
        build) {
  std::vector<FuzzFailure> failures;
  const std::vector<Mutant> accepted =
      accepted_mutants(first, number, target, counts, skip, begin, failures);
  if (accepted.empty()) return failures;
  std::vector<Program> programs;
  for (const Mutant& one : accepted) programs.push_back(one.program);
  const Check wrong_with = build(accepted, programs);
  for (size_t k = 0; k < accepted.size(); k++) {
    begin(accepted[k].seed);
    const std::string wrong = wrong_with(k);
    if (!wrong.empty())
      failures.push_back(failure_of(accepted[k].seed, wrong));
    else
      (accepted[k].raises ? counts.raised : counts.ran)++;
  }
  return failures;
}

}  // namespace

std::string mutant(uint64_t seed) {
  static constexpr const char* kStages[] = {"lower", "fuse", "schedule", "plan_memory"};
  const uint64_t group = seed / 16;
  const Target target = group % 3 == 2 ? Target::Cuda : Target::Cpp;
  Pipeline pipeline = until(default_pipeline(), kStages[group / 3 % 4]);
  pipeline.push_back({"emit", Emit([](const Tiles&) { return Source{}; })});
  return mutated(print(run_pipeline(pipeline, random_graph(group, 8), false, target).program),
                 seed);
}

std::vector<FuzzFailure> fuzz_programs(uint64_t first, int number, MutantCounts& counts,
                                       const std::set<uint64_t>& skip,
                                       const std::function<void(uint64_t)>& begin) {
  const auto build = [](const std::vector<Mutant>& mutants,
                        const std::vector<Program>& programs) -> Check {
    const std::vector<Source> sources = emit_cpp_together(lower_all_to_tiles(programs));
    const auto library = build_cpp(sources[0].text, default_toolchain()).library;
    return [&mutants, sources, library](size_t k) {
      const auto wrong_at = [&](bool at_end) {
        return difference(mutants[k], run_fenced(mutants[k], sources[k], *library, at_end));
      };
      const std::string wrong = wrong_at(false);
      return wrong.empty() ? wrong_at(true) : wrong;
    };
  };
  return fuzz_on(Target::Cpp, first, number, counts, skip, begin, build);
}

std::vector<FuzzFailure> fuzz_programs_cuda(uint64_t first, int number, MutantCounts& counts,
                                            const std::set<uint64_t>& skip,
                                            const std::function<void(uint64_t)>& begin) {
  const auto build = [](const std::vector<Mutant>& mutants,
                        const std::vector<Program>& programs) -> Check {
    const std::vector<Source> sources = emit_cuda_together(programs);
    const auto library =
        load_cubins(build_cuda(sources[0], cuda_device(0).architecture).cubins, 0);
    return [&mutants, &programs, sources, library](size_t k) {
      std::optional<std::vector<Tensor>> got;
      try {
        std::vector<Tensor> there;
        for (const Tensor& input : mutants[k].inputs) there.push_back(copy_to(input, cuda));
        got = CudaExecutable(programs[k], sources[k], library).run(there);
        for (Tensor& output : *got) output = copy_to(output, cpu);
      } catch (const Error&) {
        got.reset();
      }
      return difference(mutants[k], got);
    };
  };
  return fuzz_on(Target::Cuda, first, number, counts, skip, begin, build);
}

}  // namespace tiny_compile

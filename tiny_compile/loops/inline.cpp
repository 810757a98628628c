// When is it cheaper to compute a value again than to store it for another kernel?
//
//   rows(i: 8) { store t[i] = mul(load b[i], 2) }
//   rows(j: 4) { r0 = sum(i: 8) load t[i] ; ... }
// =>
//   rows(j: 4) { r0 = sum(i: 8) mul(load b[i], 2) ; ... }
//
// Reductions are never repeated, costly functions only where each value is used once, and no
// formula is repeated that would read more than the stored result.
#include "tiny_compile/loops/inline.h"

#include <algorithm>
#include <set>

#include "tiny_compile/loops/align.h"
#include "tiny_compile/loops/bytes_moved.h"
#include "tiny_compile/loops/clone_with_mapping.h"
#include "tiny_compile/loops/mask_facts.h"
#include "tiny_compile/loops/short_sums.h"
#include "tiny_compile/loops/simplify_under_mask.h"
#include "tiny_compile/loops/work.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostIndex = 64;    // parts of an index
constexpr int kMostRepeated = 32;     // work of a CPU's kernel that is done elsewhere as well
constexpr int64_t kSpare = 1 << 25;   // work that a whole GPU does while two kernels start
constexpr int64_t kLittle = 1 << 18;  // bytes that cost less than to wait for another kernel

// The producer's axes at the place that an index of its buffer names.
Substitution places_in(const Kernel& kernel, const Nest& nest, const Expr& index) {
  Substitution axes;
  for (const Loop& loop : nest)
    axes.push_back(
        {kernel.axes[loop.axis].name, mod(floor_div(index, loop.stride), loop.extent)});
  return axes;
}

int64_t longest_index(const Kernel& kernel, const std::vector<bool>& wanted,
                      const Substitution& axes, const Kernel& consumer, int mask) {
  int64_t longest = 0;
  for (size_t id = 0; id < wanted.size(); id++) {
    const Scalar& scalar = kernel.scalars[id];
    if (!wanted[id]) continue;
    const Expr index = substitute(scalar.index, axes);
    const bool narrows = scalar.kind == ScalarKind::Load || scalar.kind == ScalarKind::Index;
    longest = std::max(longest,
                       (narrows ? simplify_under_mask(consumer, mask, index) : index).size());
  }
  return longest;
}

const Step& store_of(const Group& producer, int buffer) {
  return producer.kernel.steps[producer.store_to(buffer)];
}

std::string why_not_copied(const Program& program, const Group& consumer, const Group& producer,
                           int buffer) {
  const Step& store = store_of(producer, buffer);
  const std::vector<bool> wanted = reachable(producer.kernel, store);
  const auto nest = nest_of(producer.kernel, store.index, {});
  if (has_registers(producer.kernel, wanted)) return "a reduction is not computed again";
  if (!nest || !covers(*nest, program.buffers[buffer].size))
    return "it reads other places than the ones written";
  if (std::count(wanted.begin(), wanted.end(), true) > static_cast<int64_t>(kMostCopied) ||
      consumer.kernel.scalars.size() > kMostCopied)
    return "it is too long to be copied";
  return "";
}

// What a reader would compute of a value, and what that takes.
struct Asked {
  std::vector<bool> wanted;
  int work = 0;       // of one element
  int64_t times = 0;  // that elements are asked for, all together
  bool only_user = false;
};

std::string why_not_worth_it(const Program& program, const Group& consumer,
                             const Group& producer, int buffer, const Asked& asked, int cheap) {
  const Buffer& stored = program.buffers[buffer];
  const int64_t size = stored.size.bounds().high;
  if (consumer.has(StepKind::Sort) && asked.work > 0)
    return "a sort reads its row many times: it stays in memory";
  if (consumer.has(StepKind::Dot) && asked.work > 0)
    return "a matmul reads its operands many times: they stay in memory";
  // A GPU has arithmetic to spare for masks, and threads that wait for memory meanwhile.
  const bool on_gpu = program.target == Target::Cuda;
  const int again = on_gpu
                        ? cost(producer.kernel, asked.wanted, made_of_indices(producer.kernel))
                        : asked.work;
  const bool repeats = size > 1 && asked.times > (on_gpu ? size + size / kBorder : size);
  const bool too_much = !on_gpu && (repeats || !asked.only_user) &&
                        consumer.repeated + asked.work > kMostRepeated;
  const bool is_spare = on_gpu && cheap > 0 && asked.times <= kSpare / std::max(again, 1);
  if (repeats && ((again > cheap && !is_spare) || too_much))
    return "it would be computed many times over";
  if (repeats_outer_work(producer, store_of(producer, buffer), asked.wanted, asked.times,
                         cheap))
    return "it would do once for each element what is done for many at once";
  if (too_much) return "others need it in memory, and it is long to compute";
  const int64_t bytes = size * size_of(stored.type.dtype);
  if (!asked.only_user &&
      bytes_read(program, producer.kernel, asked.wanted) > std::max(bytes, kLittle))
    return "others need it in memory, and reading its inputs again costs more";
  return "";
}

// Whether the verifier will see that the kernel's loads from what the producer reads are within
// it: masks in masks may say so in ways that it does not understand.
bool stays_within(const Program& program, const Kernel& kernel, const Kernel& producer) {
  std::set<int> read;
  for (const Scalar& scalar : producer.scalars)
    if (scalar.kind == ScalarKind::Load) read.insert(scalar.buffer);
  MaskFacts facts(kernel);
  return std::all_of(kernel.scalars.begin(), kernel.scalars.end(), [&](const Scalar& scalar) {
    if (scalar.kind != ScalarKind::Load || scalar.mask < 0 || !read.count(scalar.buffer))
      return true;
    const Expr& size = program.buffers[scalar.buffer].size;
    return !size.is_constant() || facts.within(scalar.index, size, scalar.mask);
  });
}

// Whether each place that data chooses is still asked for, so that one which is none is an error.
bool asks_for_all(const Kernel& kernel, const std::vector<bool>& wanted,
                  const Substitution& axes, const Scalar& load) {
  for (size_t k = 0; k < load.operands.size(); k++) {
    bool asks = false;
    for (size_t id = 0; id < wanted.size(); id++)
      asks = asks || (wanted[id] &&
                      depends_on(substitute(kernel.scalars[id].index, axes), indirect(k)));
    if (!asks) return false;
  }
  return true;
}

// Whether the value can be found at each place where it is read; if so, "" and it is.
std::string replace_loads(const Program& program, Group& consumer, const Group& producer,
                          int buffer) {
  const Step& store = store_of(producer, buffer);
  const std::vector<bool> wanted = reachable(producer.kernel, store);
  const auto nest = nest_of(producer.kernel, store.index, {});
  for (const Scalar& load : consumer.kernel.scalars) {
    if (load.kind != ScalarKind::Load || load.buffer != buffer) continue;
    const Substitution axes = places_in(producer.kernel, *nest, load.index);
    if (!load.operands.empty() && (!can_move_to_indirect(producer.kernel, wanted) ||
                                   !asks_for_all(producer.kernel, wanted, axes, load)))
      return "it is read at a place chosen by data";
    if (longest_index(producer.kernel, wanted, axes, consumer.kernel, load.mask) > kMostIndex)
      return "its indices would grow too long";
  }
  const Kernel source = std::move(consumer.kernel);
  consumer.kernel = source;
  consumer.kernel.scalars.clear();
  consumer.table = std::make_unique<ScalarTable>(consumer.kernel);
  ScalarMapping how;
  how.replace = [&](const Scalar& load) {
    if (load.buffer != buffer) return -1;
    ScalarMapping there;
    there.mask = load.mask;
    there.axes = places_in(producer.kernel, *nest, load.index);
    there.indirect = load.operands;
    there.limits = load.limits;
    const int value =
        clone_with_mapping(producer.kernel, wanted, there, *consumer.table)[store.value];
    if (load.mask < 0) return value;
    return consumer.table->apply(Op::where, load.dtype,
                                 {load.mask, value, consumer.table->constant(load.value)});
  };
  const std::vector<int> ids = clone_with_mapping(source, {}, how, *consumer.table);
  if (!stays_within(program, consumer.kernel, producer.kernel)) {
    consumer.kernel = source;
    consumer.table = std::make_unique<ScalarTable>(consumer.kernel);
    return "it could not be proved that its masks keep within what it reads";
  }
  for (Step& step : consumer.kernel.steps) {
    for (int* id : step.roots()) *id = *id < 0 ? -1 : ids[*id];
  }
  consumer.kernel.again = std::max(consumer.kernel.again, producer.kernel.again);
  return "";
}

// The value is computed for elements that are asked for many times only if `cheap` ops do it.
std::string inline_formula(const Program& program, Group& consumer, const Group& producer,
                           int buffer, bool only_user, int cheap) {
  if (std::string reason = why_not_copied(program, consumer, producer, buffer); !reason.empty())
    return reason;
  Asked asked{reachable(producer.kernel, store_of(producer, buffer)), 0,
              times_asked(consumer, buffer), only_user};
  asked.work = cost(producer.kernel, asked.wanted);
  std::string reason = why_not_worth_it(program, consumer, producer, buffer, asked, cheap);
  if (reason.empty()) reason = replace_loads(program, consumer, producer, buffer);
  const int64_t size = program.buffers[buffer].size.bounds().high;
  if (reason.empty() && (!only_user || asked.times > size)) consumer.repeated += asked.work;
  return reason;
}

}  // namespace

std::string inline_producer(const Program& program, Group& consumer, const Group& producer,
                            int buffer, bool only_user) {
  if (program.target == Target::Cuda) {
    const auto written_out = with_sums_written_out(producer, buffer);
    if (written_out)
      return inline_formula(program, consumer, *written_out, buffer, only_user, 0);
  }
  return inline_formula(program, consumer, producer, buffer, only_user, kCheapOps);
}

std::string inline_at_any_cost(const Program& program, Group& consumer, const Group& producer,
                               int buffer) {
  const std::string reason = why_not_copied(program, consumer, producer, buffer);
  return reason.empty() ? replace_loads(program, consumer, producer, buffer) : reason;
}

}  // namespace tiny_compile

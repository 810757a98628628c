// How does a dot come to know that most of what it reads are zeros that a pad has written?
//
//   rows(i0: 14, i1: 2)  { store t[i0*2 + i1] = load g[i0] if i1 < 1 else 0.0 }
//   rows(i0: 30)         { store u[i0] = load t[i0 - 1] if i0 - 1 >= 0 and i0 - 1 < 28 else 0.0 }
//   rows(i0: 28, i1: 64) { r0 = dot(j0: 3) load u[i0 + j0], load w[i1*3 + j0] ; .. }
// =>
//   rows(i0: 28, i1: 64) { r0 = dot(j0: 3) load g[(i0 + j0 - 1)/2] if (i0 + j0 - 1)%2 < 1
//                                 and i0 + j0 - 1 >= 0 and i0 + j0 - 1 < 28 else 0.0, .. }
//
// It takes in the whole chain of pads, before others are fused with them. A condition is simplified
// by those that hold beside it, since only all of them together let an element by.
#include "tiny_compile/loops/read_past_pads.h"

#include <algorithm>
#include <optional>

#include "tiny_compile/loops/inline.h"
#include "tiny_compile/loops/lives.h"
#include "tiny_compile/loops/simplify_under_mask.h"
#include "tiny_compile/loops/split_dot.h"

namespace tiny_compile {
namespace {

// The load that the kernel does nothing but store, with zeros where it is masked; -1: it does more.
int only_load(const Kernel& kernel) {
  if (kernel.steps.size() != 1 || kernel.steps[0].kind != StepKind::Store) return -1;
  int load = -1;
  for (size_t id = 0; id < kernel.scalars.size(); id++) {
    if (kernel.scalars[id].kind != ScalarKind::Load) continue;
    if (load >= 0) return -1;
    load = static_cast<int>(id);
  }
  if (load < 0 || kernel.steps[0].value != load) return -1;
  const Scalar& scalar = kernel.scalars[load];
  const bool zeros = scalar.mask < 0 || scalar.value.as_double() == 0;
  return zeros && scalar.operands.empty() ? load : -1;
}

bool contains_all(const std::vector<int>& all, const std::vector<int>& some) {
  return std::all_of(some.begin(), some.end(), [&](int id) {
    return std::find(all.begin(), all.end(), id) != all.end();
  });
}

// where(c, load x[..] if c and d else 0.0, 0.0)  =>  load x[..] if c and d else 0.0
int without_where(const Kernel& kernel, int id) {
  const Scalar& scalar = kernel.scalars[id];
  if (scalar.kind != ScalarKind::Apply || scalar.op != Op::where) return id;
  const Scalar &load = kernel.scalars[scalar.operands[1]],
               &otherwise = kernel.scalars[scalar.operands[2]];
  const bool same =
      load.kind == ScalarKind::Load && load.mask >= 0 &&
      otherwise.kind == ScalarKind::Constant && otherwise.value == load.value &&
      contains_all(conjuncts(kernel, load.mask), conjuncts(kernel, scalar.operands[0]));
  return same ? scalar.operands[1] : id;
}

// The load's conditions, and its index, as they read where all of them hold.
Kernel with_short_conditions(const Kernel& kernel, int load) {
  const int mask = kernel.scalars[load].mask;
  Kernel result = kernel;
  result.scalars.clear();
  ScalarTable table(result);
  std::vector<int> ids;
  for (Scalar scalar : kernel.scalars) {
    if (scalar.kind == ScalarKind::Index || scalar.kind == ScalarKind::Load)
      scalar.index = simplify_under_mask(kernel, mask, scalar.index);
    for (int& operand : scalar.operands) operand = ids[operand];
    if (scalar.mask >= 0) scalar.mask = ids[scalar.mask];
    ids.push_back(scalar.kind == ScalarKind::Index ? table.index(scalar.index)
                                                   : table.add(std::move(scalar)));
  }
  result.steps[0].value = ids[load];
  return normalize(std::move(result));
}

class Reader {
 public:
  explicit Reader(const Program& program)
      : program_(program), writer_(program.buffers.size(), -1) {
    for (size_t k = 0; k < program.kernels.size(); k++) {
      for (const Step& step : program.kernels[k].steps) {
        if (!makes_register(step)) writer_[step.buffer] = static_cast<int>(k);
      }
    }
  }

  Program run() {
    for (Kernel& kernel : program_.kernels) {
      if (kernel.steps.size() != 2 || kernel.steps[0].kind != StepKind::Dot) continue;
      for (const bool other : {false, true}) {
        const Step& dot = kernel.steps[0];
        const std::optional<Kernel> past = read_past(kernel, other ? dot.rhs : dot.value);
        if (!past || !can_split_dot(program_, *past)) continue;
        kernel = *past;
        break;
      }
    }
    return without_unread();
  }

 private:
  // The kernel with what the load's buffer is a pad of, and that is one of, and so on.
  std::optional<Kernel> read_past(const Kernel& kernel, int id) const {
    const Scalar& load = kernel.scalars[id];
    const int pad = load.kind == ScalarKind::Load ? writer_[load.buffer] : -1;
    if (pad < 0 || program_.buffers[load.buffer].role != Role::Temporary) return std::nullopt;
    Kernel chain = program_.kernels[pad];
    const int buffer = load.buffer;
    int from = only_load(chain);
    if (from < 0) return std::nullopt;
    chain = simple(chain);
    while ((from = only_load(chain)) >= 0) {
      const std::optional<Kernel> longer = taking_in(chain, chain.scalars[from].buffer);
      if (!longer || only_load(*longer) < 0) break;
      chain = *longer;
    }
    from = only_load(chain);
    if (from < 0 || chain.scalars[from].mask < 0) return std::nullopt;
    return taking_in(kernel, chain, buffer);
  }

  std::optional<Kernel> taking_in(const Kernel& kernel, int buffer) const {
    const int writer = writer_[buffer];
    if (writer < 0 || only_load(program_.kernels[writer]) < 0) return std::nullopt;
    return taking_in(kernel, simple(program_.kernels[writer]), buffer);
  }

  std::optional<Kernel> taking_in(const Kernel& kernel, const Kernel& pad, int buffer) const {
    Group reader(kernel);
    if (!inline_at_any_cost(program_, reader, Group(pad), buffer).empty()) return std::nullopt;
    return simple(reader.finish());
  }

  static Kernel simple(Kernel kernel) {
    for (Step& step : kernel.steps) {
      for (int* id : {&step.value, &step.rhs}) *id = *id < 0 ? -1 : without_where(kernel, *id);
    }
    const int load = only_load(normalize(kernel));
    kernel = normalize(std::move(kernel));
    const bool masked = load >= 0 && kernel.scalars[load].mask >= 0;
    return masked ? with_short_conditions(kernel, load) : kernel;
  }

  // Pads that nobody reads any more are gone.
  Program without_unread() {
    std::vector<bool> read(program_.buffers.size());
    for (int output : program_.outputs) read[output] = true;
    std::vector<Kernel> kept;
    for (size_t k = program_.kernels.size(); k-- > 0;) {
      Kernel& kernel = program_.kernels[k];
      const bool wanted = only_load(kernel) < 0 || read[kernel.steps[0].buffer] ||
                          program_.buffers[kernel.steps[0].buffer].role != Role::Temporary;
      if (!wanted) continue;
      for (const int buffer : loaded_buffers(kernel)) read[buffer] = true;
      kept.push_back(std::move(kernel));
    }
    std::reverse(kept.begin(), kept.end());
    program_.kernels = std::move(kept);
    return std::move(program_);
  }

  Program program_;
  std::vector<int> writer_;  // of each buffer, a kernel
};

}  // namespace

Program read_past_pads(const Program& program) { return Reader(program).run(); }

}  // namespace tiny_compile

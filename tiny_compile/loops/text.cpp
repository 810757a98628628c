// How does a Program read? One line a buffer, a step or a shared scalar; see program.h. Scalars
// used once stand where they are used, up to a depth that a reader can take in, so that the
// text is linear in the kernel and parses back to an equal value.
#include <algorithm>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {
namespace {

constexpr int kMostDepth = 6;

// A kernel, and what decides which of its scalars have lines of their own, and where.
struct PrintedKernel {
  const Program& program;
  const Kernel& kernel;
  std::vector<int> uses, depth;  // of each scalar
  std::vector<int> first_step;   // that needs the scalar: its line stands before that step's
};

int inline_depth(const PrintedKernel& p, int id) {
  return p.depth[id] >= kMostDepth ? 0 : p.depth[id];
}

void count_uses(PrintedKernel& p) {
  for (size_t id = 0; id < p.kernel.scalars.size(); id++) {
    const Scalar& scalar = p.kernel.scalars[id];
    for (int operand : scalar.operands)
      p.uses[operand]++, p.depth[id] = std::max(p.depth[id], inline_depth(p, operand) + 1);
    if (scalar.mask >= 0)
      p.uses[scalar.mask]++,
          p.depth[id] = std::max(p.depth[id], inline_depth(p, scalar.mask) + 1);
  }
  for (const Step& step : p.kernel.steps) {
    for (int id : step.roots()) {
      if (id >= 0) p.uses[id]++;
    }
  }
}

void find_first_steps(PrintedKernel& p) {
  for (size_t s = p.kernel.steps.size(); s-- > 0;) {
    const std::vector<bool> needed = reachable(p.kernel, p.kernel.steps[s]);
    for (size_t id = 0; id < needed.size(); id++) {
      if (needed[id]) p.first_step[id] = static_cast<int>(s);
    }
  }
}

PrintedKernel printed(const Program& program, const Kernel& kernel) {
  const size_t count = kernel.scalars.size();
  PrintedKernel p{program, kernel, std::vector<int>(count), std::vector<int>(count),
                  std::vector<int>(count, -1)};
  count_uses(p);
  find_first_steps(p);
  return p;
}

bool has_line(const PrintedKernel& p, int id) {
  const ScalarKind kind = p.kernel.scalars[id].kind;
  if (kind == ScalarKind::Constant || kind == ScalarKind::Register) return false;
  return p.uses[id] > 1 || p.depth[id] >= kMostDepth;
}

// --- values ---

std::string value(const PrintedKernel& p, int id);

std::string reference(const PrintedKernel& p, int id) {
  return has_line(p, id) ? str("$", id) : value(p, id);
}

std::string chosen(const PrintedKernel& p, const Scalar& scalar) {  // "; at0 = $3 < 1000"
  std::string text;
  for (size_t k = 0; k < scalar.operands.size(); k++)
    text += str("; at", k, " = ", reference(p, scalar.operands[k]), " < ", scalar.limits[k]);
  return text;
}

std::string masked(const PrintedKernel& p, const Scalar& s) {
  return s.mask < 0 ? "" : str(" if ", reference(p, s.mask), " else ", s.value.str());
}

std::string value(const PrintedKernel& p, int id) {
  const Scalar& s = p.kernel.scalars[id];
  switch (s.kind) {
    case ScalarKind::Constant: return str(s.dtype, " ", s.value.str());
    case ScalarKind::Register: return str("r", s.step);
    case ScalarKind::Index: return str("index[", s.index, chosen(p, s), "]", masked(p, s));
    case ScalarKind::Load:
      return str("load ", p.program.buffers[s.buffer].name, "[", s.index, chosen(p, s), "]",
                 masked(p, s));
    case ScalarKind::Philox:
      return str("philox<", s.value.as_integer(), ">(", reference(p, s.operands[0]), ", ",
                 reference(p, s.operands[1]), ")[", s.index, "]");
    case ScalarKind::Element:
    case ScalarKind::Votes:
    case ScalarKind::Apply: break;
  }
  std::vector<std::string> operands;
  for (int operand : s.operands) operands.push_back(reference(p, operand));
  const std::string target = info(s.op).result == Result::Cast ? str("<", s.dtype, ">") : "";
  return str(info(s.op).name, target, "(", join(operands, ", "), ")");
}

// --- lines ---

std::string axes(const PrintedKernel& p, const std::vector<int>& ids) {
  std::vector<std::string> items;
  for (int id : ids)
    items.push_back(str(p.kernel.axes[id].name, ": ", p.kernel.axes[id].extent));
  return join(items, ", ");
}

std::string only_if(const PrintedKernel& p, const Step& s) {
  return s.mask < 0 ? "" : " where " + reference(p, s.mask);
}

std::string step_line(const PrintedKernel& p, int number) {
  const Step& s = p.kernel.steps[number];
  const std::string loops = s.inner.empty() ? "" : " for (" + axes(p, s.inner) + ")";
  const std::string name = makes_register(s) ? "" : p.program.buffers[s.buffer].name;
  switch (s.kind) {
    case StepKind::Reduce:
      return str("r", number, ": ", s.dtype, " = ", info(s.op).name, "(", axes(p, s.inner),
                 ") ", reference(p, s.value));
    case StepKind::Dot:
      return str("r", number, ": ", s.dtype, " = dot(", axes(p, s.inner), ") ",
                 reference(p, s.value), ", ", reference(p, s.rhs));
    case StepKind::Store:
      return str("store ", name, "[", s.index, "]", loops, " = ", reference(p, s.value));
    case StepKind::Fold:
      return str("fold ", name, "[", s.index, "]", loops, " = sum(",
                 p.kernel.axes[p.kernel.rows - 1].name, ") ", reference(p, s.value));
    case StepKind::Scan:
      return str("scan ", name, "[", s.index, "]", loops, " = ", info(s.op).name,
                 s.values ? " values" : "", s.exclusive ? " before " : " ",
                 reference(p, s.value), s.rhs < 0 ? "" : " from " + reference(p, s.rhs),
                 only_if(p, s));
    case StepKind::Sort:
      return str("sort ", name, "[", s.index, "]", loops, " = ", info(s.op).name, " ",
                 reference(p, s.value), s.limit.is_constant(0) ? "" : str(" in ", s.limit),
                 s.rhs < 0 ? "" : " from " + reference(p, s.rhs), only_if(p, s));
    case StepKind::Scatter: break;
  }
  return str("scatter ", name, "[", s.index, "; at0 = ", reference(p, s.rhs), " < ", s.limit,
             "]", loops, " = ", info(s.op).name, " ", reference(p, s.value),
             s.order < 0 ? "" : " by " + reference(p, s.order), only_if(p, s));
}

// Lines for the shared scalars that a step needs first, then the step.
std::string step(const PrintedKernel& p, int number) {
  std::string text;
  for (int id = 0; id < static_cast<int>(p.first_step.size()); id++) {
    if (p.first_step[id] == number && has_line(p, id))
      text += str("    $", id, " = ", value(p, id), "\n");
  }
  return text + "    " + step_line(p, number) + "\n";
}

std::string places(const Kernel& kernel) {
  std::vector<std::string> items;
  for (const Location& where : kernel.where) {
    const std::string place =
        Location{where.file.substr(where.file.rfind('/') + 1), where.line}.str();
    if (items.size() < 4 && std::find(items.begin(), items.end(), place) == items.end())
      items.push_back(place);
  }
  return items.empty() ? "" : "  # " + join(items, " ");
}

std::string buffer_line(const Program& program, const Buffer& buffer) {
  const char* role = buffer.role == Role::Input    ? "input"
                     : buffer.role == Role::Output ? "output"
                                                   : "temp";
  std::string line = str("  ", role, " ", buffer.name, ": ", buffer.type.str());
  if (!buffer.strides.empty()) line += str(" strides=[", join(buffer.strides, ","), "]");
  if (!buffer.offset.is_constant(0)) line += str(" offset=", buffer.offset);
  if (buffer.size != product(buffer.type.shape)) line += str(" size=", buffer.size);
  if (buffer.align != 16) line += str(" align=", buffer.align);
  if (buffer.donated) line += " donated";
  if (buffer.place >= 0) line += str(" at ", buffer.place);
  if (buffer.over >= 0) line += " over " + program.buffers[buffer.over].name;
  return line + "\n";
}

}  // namespace

std::string print(const Program& program, const Kernel& kernel) {
  const PrintedKernel p = printed(program, kernel);
  const std::string again = kernel.again > 0 ? str(" again=", kernel.again) : "";
  std::string text = "  kernel " + kernel.name + again + " rows(" + axes(p, row_axes(kernel)) +
                     ") {" + places(kernel) + "\n";
  for (size_t s = 0; s < kernel.steps.size(); s++) text += step(p, static_cast<int>(s));
  if (kernel.schedule) text += "    schedule " + str(*kernel.schedule) + "\n";
  for (const SizedSchedule& one : kernel.sized)
    text += str("    schedule for ", str(one.when), " ", str(one.schedule), "\n");
  return text + "  }\n";
}

std::string print(const Program& program) {
  std::string text = "program " + program.name + sizes_text(sizes(program)) +
                     (program.target == Target::Cuda ? " on cuda" : "");
  if (program.machine != default_machine(program.target))
    text += " for " + str(program.machine);
  text += " {\n";
  if (program.matmul == Matmul::Library) text += "  matmul library\n";
  if (program.matmul == Matmul::LibraryTf32) text += "  matmul library_tf32\n";
  for (const Buffer& buffer : program.buffers) text += buffer_line(program, buffer);
  for (const Kernel& kernel : program.kernels) text += print(program, kernel);
  for (const std::vector<int>& launch : program.launches) {
    std::vector<std::string> names;
    for (int kernel : launch) names.push_back(program.kernels[kernel].name);
    text += "  launch " + join(names, ", ") + "\n";
  }
  if (program.arena_bytes > 0) text += str("  arena ", program.arena_bytes, "\n");
  std::vector<std::string> outputs;
  for (int output : program.outputs) outputs.push_back(program.buffers[output].name);
  return text + "  return " + join(outputs, ", ") + "\n}\n";
}

}  // namespace tiny_compile

// How does a Program read? One line a buffer, a step or a shared scalar; see program.h. Scalars
// used once stand where they are used, up to a depth that a reader can take in, so that the
// text is linear in the kernel and parses back to an equal value.
#include <algorithm>
#include <map>

#include "tiny_compile/loops/program.h"

namespace tiny_compile {
namespace {

constexpr int kMostDepth = 6;

class KernelPrinter {
 public:
  KernelPrinter(const Program& program, const Kernel& kernel)
      : program_(program), kernel_(kernel) {
    count_uses();
  }

  std::string print() {
    const std::string again =
        kernel_.again > 0 ? tiny_compile::str(" again=", kernel_.again) : "";
    std::string text = "  kernel " + kernel_.name + again + " rows(" + axes(row_axes(kernel_)) +
                       ") {" + places() + "\n";
    for (size_t s = 0; s < kernel_.steps.size(); s++) text += step(static_cast<int>(s));
    if (kernel_.schedule) text += "    schedule " + str(*kernel_.schedule) + "\n";
    for (const SizedSchedule& one : kernel_.sized)
      text += str("    schedule for ", str(one.when), " ", str(one.schedule), "\n");
    return text + "  }\n";
  }

 private:
  void count_uses() {
    uses_.assign(kernel_.scalars.size(), 0);
    depth_.assign(kernel_.scalars.size(), 0);
    for (size_t id = 0; id < kernel_.scalars.size(); id++) {
      const Scalar& scalar = kernel_.scalars[id];
      for (int operand : scalar.operands)
        uses_[operand]++, depth_[id] = std::max(depth_[id], inline_depth(operand) + 1);
      if (scalar.mask >= 0)
        uses_[scalar.mask]++, depth_[id] = std::max(depth_[id], inline_depth(scalar.mask) + 1);
    }
    for (const Step& step : kernel_.steps) {
      for (int id : step.roots()) {
        if (id >= 0) uses_[id]++;
      }
    }
  }
  int inline_depth(int id) const { return depth_[id] >= kMostDepth ? 0 : depth_[id]; }

  bool has_line(int id) const {
    const ScalarKind kind = kernel_.scalars[id].kind;
    if (kind == ScalarKind::Constant || kind == ScalarKind::Register) return false;
    return uses_[id] > 1 || depth_[id] >= kMostDepth;
  }

  std::string axes(const std::vector<int>& ids) const {
    std::vector<std::string> items;
    for (int id : ids)
      items.push_back(tiny_compile::str(kernel_.axes[id].name, ": ", kernel_.axes[id].extent));
    return join(items, ", ");
  }

  std::string places() const {
    std::vector<std::string> items;
    for (const Location& where : kernel_.where) {
      const std::string place =
          Location{where.file.substr(where.file.rfind('/') + 1), where.line}.str();
      if (items.size() < 4 && std::find(items.begin(), items.end(), place) == items.end())
        items.push_back(place);
    }
    return items.empty() ? "" : "  # " + join(items, " ");
  }

  std::string reference(int id) const {
    return has_line(id) ? tiny_compile::str("$", id) : value(id);
  }

  std::string chosen(const Scalar& scalar) const {  // "; at0 = $3 < 1000"
    std::string text;
    for (size_t k = 0; k < scalar.operands.size(); k++)
      text += tiny_compile::str("; at", k, " = ", reference(scalar.operands[k]), " < ",
                                scalar.limits[k]);
    return text;
  }

  std::string value(int id) const {
    const Scalar& s = kernel_.scalars[id];
    switch (s.kind) {
      case ScalarKind::Constant: return tiny_compile::str(s.dtype, " ", s.value.str());
      case ScalarKind::Register: return tiny_compile::str("r", s.step);
      case ScalarKind::Index:
        return tiny_compile::str("index[", s.index, chosen(s), "]", masked(s));
      case ScalarKind::Load:
        return tiny_compile::str("load ", program_.buffers[s.buffer].name, "[", s.index,
                                 chosen(s), "]", masked(s));
      case ScalarKind::Philox:
        return tiny_compile::str("philox<", s.value.as_integer(), ">(",
                                 reference(s.operands[0]), ", ", reference(s.operands[1]), ")[",
                                 s.index, "]");
      case ScalarKind::Element:
      case ScalarKind::Votes:
      case ScalarKind::Apply: break;
    }
    std::vector<std::string> operands;
    for (int operand : s.operands) operands.push_back(reference(operand));
    const std::string target =
        info(s.op).result == Result::Cast ? tiny_compile::str("<", s.dtype, ">") : "";
    return tiny_compile::str(info(s.op).name, target, "(", join(operands, ", "), ")");
  }

  std::string masked(const Scalar& s) const {
    return s.mask < 0 ? ""
                      : tiny_compile::str(" if ", reference(s.mask), " else ", s.value.str());
  }

  // Lines for the shared scalars that a step needs first, then the step.
  std::string step(int number) {
    const Step& s = kernel_.steps[number];
    std::string text;
    const std::vector<bool> needed = reachable(kernel_, s);
    for (size_t id = 0; id < needed.size(); id++) {
      if (!needed[id] || !has_line(static_cast<int>(id)) || printed_[static_cast<int>(id)])
        continue;
      printed_[static_cast<int>(id)] = true;
      text += tiny_compile::str("    $", id, " = ", value(static_cast<int>(id)), "\n");
    }
    return text + "    " + step_line(number) + "\n";
  }

  std::string step_line(int number) const {
    const Step& s = kernel_.steps[number];
    const std::string loops = s.inner.empty() ? "" : " for (" + axes(s.inner) + ")";
    const std::string name = makes_register(s) ? "" : program_.buffers[s.buffer].name;
    switch (s.kind) {
      case StepKind::Reduce:
        return tiny_compile::str("r", number, ": ", s.dtype, " = ", info(s.op).name, "(",
                                 axes(s.inner), ") ", reference(s.value));
      case StepKind::Dot:
        return tiny_compile::str("r", number, ": ", s.dtype, " = dot(", axes(s.inner), ") ",
                                 reference(s.value), ", ", reference(s.rhs));
      case StepKind::Store:
        return tiny_compile::str("store ", name, "[", s.index, "]", loops, " = ",
                                 reference(s.value));
      case StepKind::Fold:
        return tiny_compile::str("fold ", name, "[", s.index, "]", loops, " = sum(",
                                 kernel_.axes[kernel_.rows - 1].name, ") ", reference(s.value));
      case StepKind::Scan:
        return tiny_compile::str("scan ", name, "[", s.index, "]", loops, " = ",
                                 info(s.op).name, s.values ? " values" : "",
                                 s.exclusive ? " before " : " ", reference(s.value),
                                 s.rhs < 0 ? "" : " from " + reference(s.rhs), only_if(s));
      case StepKind::Sort:
        return tiny_compile::str(
            "sort ", name, "[", s.index, "]", loops, " = ", info(s.op).name, " ",
            reference(s.value),
            s.limit.is_constant(0) ? "" : tiny_compile::str(" in ", s.limit),
            s.rhs < 0 ? "" : " from " + reference(s.rhs), only_if(s));
      case StepKind::Scatter: break;
    }
    return tiny_compile::str("scatter ", name, "[", s.index, "; at0 = ", reference(s.rhs),
                             " < ", s.limit, "]", loops, " = ", info(s.op).name, " ",
                             reference(s.value), s.order < 0 ? "" : " by " + reference(s.order),
                             only_if(s));
  }

  std::string only_if(const Step& s) const {
    return s.mask < 0 ? "" : " where " + reference(s.mask);
  }

  const Program& program_;
  const Kernel& kernel_;
  std::vector<int> uses_, depth_;
  std::map<int, bool> printed_;
};

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
  return KernelPrinter(program, kernel).print();
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

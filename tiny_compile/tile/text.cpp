// How does a tile program read? See tile.h; a statement a line, bodies indented.
#include <algorithm>

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {
namespace {

// --- the first line --------------------------------------------------------------------------

std::string units(const Tile& tile) {
  const bool has_grain = !tile.grain.is_constant(1);
  return str(" units ", tile.units, has_grain ? str(" grain ", tile.grain) : "",
             tile.together == 1 ? "" : str(" together ", tile.together));
}

std::string grid(const Tile& tile) {
  return str(" grid ", tile.grid, tile.cluster == 1 ? "" : str(" cluster ", tile.cluster),
             " block ", tile.warps, " warps",
             tile.resident ? str(" resident ", tile.resident) : "", tile.alone ? " alone" : "");
}

// --- parts of a statement --------------------------------------------------------------------

// What names stand for.
struct Printed {
  const Program& program;
  const Tile& tile;
};

// "q < 16", or "i1: 100 = first .. last"
std::string range(const Statement& s) {
  if (s.from.is_constant(0) && s.place == s.index) return str(s.name, " < ", s.index);
  return str(s.name, ": ", s.place, " = ", s.from, " .. ", s.index);
}

std::string at(const Printed& p, int array, const Expr& index) {
  return str(p.tile.arrays[array].name, "[", index, "]");
}

std::string in_memory(const Printed& p, const Statement& s) {
  return str(p.program.buffers[s.buffer].name, "[", s.index, "]");
}

std::string name(const Printed& p, int id) {
  const Scalar& s = p.tile.kernel.scalars[id];
  if (s.kind == ScalarKind::Constant) return str(s.dtype, " ", s.value.str());
  return s.kind == ScalarKind::Register ? str("r", s.step) : str("$", id);
}

std::string place(const Printed& p, const Scalar& s) {
  std::string text = s.index.str();
  for (size_t k = 0; k < s.operands.size(); k++)
    text += str("; at", k, " = ", name(p, s.operands[k]), " < ", s.limits[k]);
  const std::string masked =
      s.mask < 0 ? "" : str(" if ", name(p, s.mask), " else ", s.value.str());
  return str("[", text, "]", masked);
}

std::string value(const Printed& p, int id) {
  const Scalar& s = p.tile.kernel.scalars[id];
  switch (s.kind) {
    case ScalarKind::Load: return str("load ", p.program.buffers[s.buffer].name, place(p, s));
    case ScalarKind::Index: return "index" + place(p, s);
    case ScalarKind::Philox:
      return str("philox<", s.value.as_integer(), ">(", name(p, s.operands[0]), ", ",
                 name(p, s.operands[1]), ")[", s.index, "]");
    case ScalarKind::Element: {
      const Expr lane = lane_xor_of(s);
      return at(p, s.step, s.index) + (lane.is_constant(0) ? "" : str(" of lane ^ ", lane));
    }
    case ScalarKind::Votes:
      return str("votes ", name(p, s.operands[0]), s.step == 1 ? " below" : "");
    case ScalarKind::Apply: break;
    default: return name(p, id);
  }
  std::vector<std::string> operands;
  for (int operand : s.operands) operands.push_back(name(p, operand));
  const std::string target = info(s.op).result == Result::Cast ? str("<", s.dtype, ">") : "";
  return str(info(s.op).name, target, "(", join(operands, ", "), ")");
}

// " $3 < 50"
std::string chosen(const Printed& p, const Statement& s) {
  return s.chosen < 0 ? "" : str(" ", name(p, s.chosen), " < ", s.place);
}

// " x4", " x4 of left"
std::string many(const Statement& s) {
  return str(s.width == 1 ? "" : str(" x", s.width),
             s.left.is_constant(0) ? "" : str(" of ", s.left));
}

// --- statements ------------------------------------------------------------------------------

// A statement without its body.
std::string head(const Printed& p, const Statement& s) {
  switch (s.kind) {
    case StatementKind::Let:
      return str(s.name, ": ", s.place, " = ", s.value < 0 ? s.index.str() : name(p, s.value));
    case StatementKind::Define:
      return str(name(p, s.value), " = ",
                 s.array >= 0 ? at(p, s.array, s.index) : value(p, s.value));
    case StatementKind::Divisor: return "divisor " + name(p, s.value);
    case StatementKind::Set: return str(at(p, s.array, s.index), " = ", name(p, s.value));
    case StatementKind::Load:
      return str(at(p, s.array, s.place), " = load ",
                 s.value < 0 ? "" : name(p, s.value) + ": ", in_memory(p, s), many(s));
    case StatementKind::Store: return str("store ", in_memory(p, s), " = ", name(p, s.value));
    case StatementKind::StoreAll:
      return str("store ", in_memory(p, s), many(s), " = ", at(p, s.array, s.place));
    case StatementKind::Stream:
      return str("stream ", in_memory(p, s), " x ", s.place, " = ",
                 p.tile.arrays[s.array].name);
    case StatementKind::Tree:
      return str("tree ", info(s.op).name, " ", p.tile.arrays[s.array].name, " x ", s.index);
    case StatementKind::Update:
      return str("update ", info(s.op).name, chosen(p, s), ": ",
                 s.array >= 0 ? "shared " + at(p, s.array, s.index) : in_memory(p, s), " = ",
                 name(p, s.value));
    case StatementKind::UpdateAll:
      return str("update ", info(s.op).name, " ", p.tile.arrays[s.chosen].name, " x ", s.left,
                 " < ", s.place, ": ", in_memory(p, s), " = ", p.tile.arrays[s.array].name,
                 " x", s.width, " of ", s.from);
    case StatementKind::Prefetch: return str("prefetch ", in_memory(p, s), many(s));
    case StatementKind::For:
      return str("for ", range(s), s.unrolled ? " unrolled" : "", s.vector ? " vector" : "",
                 s.transposed ? " transposed" : "", s.multiplied ? " multiplied" : "");
    case StatementKind::If:
      return s.value >= 0 ? "if " + name(p, s.value) : str("if ", s.index, " < ", s.place);
    case StatementKind::Else: return "else";
    case StatementKind::Shortcut:
      return s.value < 0 ? "shortcut" : "shortcut below " + name(p, s.value);
    case StatementKind::Barrier: return "barrier";
    case StatementKind::ClusterBarrier: return "cluster_barrier";
    case StatementKind::ClusterStart: return "cluster_start";
    case StatementKind::Send:
      return str("send ", at(p, s.array, s.index), " = ", name(p, s.value));
    case StatementKind::Await: return "await " + p.tile.arrays[s.array].name;
  }
  return {};
}

bool is_block(StatementKind kind) {
  return kind == StatementKind::For || kind == StatementKind::If ||
         kind == StatementKind::Else || kind == StatementKind::Shortcut;
}

std::string lines(const Printed& p, const Body& body, int depth) {
  const std::string indent(static_cast<size_t>(2 * depth), ' ');
  std::string text;
  for (const Statement& s : body) {
    text += indent + head(p, s);
    if (is_block(s.kind)) text += " {\n" + lines(p, s.body, depth + 1) + indent + "}";
    text += "\n";
  }
  return text;
}

}  // namespace

std::string print(const Program& program, const Tile& tile,
                  const std::vector<SizeRange>& when) {
  const Printed p{program, tile};
  std::string text = str("tile ", tile.kernel.name, when.empty() ? "" : " for " + str(when),
                         is_on_cpu(tile) ? units(tile) : grid(tile), " {\n");
  for (const Array& array : tile.arrays)
    text += str("  ", name_of(array.space), " ", array.name, ": ", array.dtype, "[", array.size,
                "]", array.packed ? " packed" : "", "\n");
  return text + lines(p, tile.body, 1) + "}\n";
}

}  // namespace tiny_compile

// How does a tile program read? See tile.h; a statement a line, bodies indented.
#include <algorithm>

#include "tiny_compile/tile/tile.h"

namespace tiny_compile {
namespace {

class TilePrinter {
 public:
  TilePrinter(const Program& program, const Tile& tile) : program_(program), tile_(tile) {}

  std::string print(const std::vector<SizeRange>& when) {
    text_ = str("tile ", tile_.kernel.name, when.empty() ? "" : " for " + str(when),
                is_on_cpu(tile_) ? units() : grid(), " {\n");
    for (const Array& array : tile_.arrays)
      line(str(name_of(array.space), " ", array.name, ": ", array.dtype, "[", array.size, "]",
               array.packed ? " packed" : ""));
    print(tile_.body);
    return text_ + "}\n";
  }

 private:
  std::string units() const {
    const bool has_grain = !tile_.grain.is_constant(1);
    return str(" units ", tile_.units, has_grain ? str(" grain ", tile_.grain) : "",
               tile_.together == 1 ? "" : str(" together ", tile_.together));
  }
  std::string grid() const {
    return str(" grid ", tile_.grid, tile_.cluster == 1 ? "" : str(" cluster ", tile_.cluster),
               " block ", tile_.warps, " warps",
               tile_.resident ? str(" resident ", tile_.resident) : "",
               tile_.alone ? " alone" : "");
  }

  // "q < 16", or "i1: 100 = first .. last"
  std::string range(const Statement& s) const {
    if (s.from.is_constant(0) && s.place == s.index) return str(s.name, " < ", s.index);
    return str(s.name, ": ", s.place, " = ", s.from, " .. ", s.index);
  }

  void line(const std::string& text) {
    text_ += std::string(static_cast<size_t>(2 * depth_), ' ') + text + "\n";
  }

  void block(const std::string& head, const Body& body) {
    line(head + " {");
    depth_++;
    print(body);
    depth_--;
    line("}");
  }

  std::string at(int array, const Expr& index) const {
    return str(tile_.arrays[array].name, "[", index, "]");
  }
  std::string in_memory(const Statement& s) const {
    return str(program_.buffers[s.buffer].name, "[", s.index, "]");
  }

  std::string name(int id) const {
    const Scalar& s = tile_.kernel.scalars[id];
    if (s.kind == ScalarKind::Constant) return str(s.dtype, " ", s.value.str());
    return s.kind == ScalarKind::Register ? str("r", s.step) : str("$", id);
  }

  std::string place(const Scalar& s) const {
    std::string text = s.index.str();
    for (size_t k = 0; k < s.operands.size(); k++)
      text += str("; at", k, " = ", name(s.operands[k]), " < ", s.limits[k]);
    const std::string masked =
        s.mask < 0 ? "" : str(" if ", name(s.mask), " else ", s.value.str());
    return str("[", text, "]", masked);
  }

  std::string value(int id) const {
    const Scalar& s = tile_.kernel.scalars[id];
    switch (s.kind) {
      case ScalarKind::Load: return str("load ", program_.buffers[s.buffer].name, place(s));
      case ScalarKind::Index: return "index" + place(s);
      case ScalarKind::Philox:
        return str("philox<", s.value.as_integer(), ">(", name(s.operands[0]), ", ",
                   name(s.operands[1]), ")[", s.index, "]");
      case ScalarKind::Element: {
        const Expr lane = lane_xor_of(s);
        return at(s.step, s.index) + (lane.is_constant(0) ? "" : str(" of lane ^ ", lane));
      }
      case ScalarKind::Votes:
        return str("votes ", name(s.operands[0]), s.step == 1 ? " below" : "");
      case ScalarKind::Apply: break;
      default: return name(id);
    }
    std::vector<std::string> operands;
    for (int operand : s.operands) operands.push_back(name(operand));
    const std::string target = info(s.op).result == Result::Cast ? str("<", s.dtype, ">") : "";
    return str(info(s.op).name, target, "(", join(operands, ", "), ")");
  }

  // " $3 < 50"
  std::string chosen(const Statement& s) const {
    return s.chosen < 0 ? "" : str(" ", name(s.chosen), " < ", s.place);
  }

  // " x4", " x4 of left"
  std::string many(const Statement& s) const {
    return str(s.width == 1 ? "" : str(" x", s.width),
               s.left.is_constant(0) ? "" : str(" of ", s.left));
  }

  void print(const Body& body) {
    for (const Statement& s : body) print(s);
  }

  void print(const Statement& s) {
    switch (s.kind) {
      case StatementKind::Let:
        return line(
            str(s.name, ": ", s.place, " = ", s.value < 0 ? s.index.str() : name(s.value)));
      case StatementKind::Define:
        return line(
            str(name(s.value), " = ", s.array >= 0 ? at(s.array, s.index) : value(s.value)));
      case StatementKind::Divisor: return line("divisor " + name(s.value));
      case StatementKind::Set: return line(str(at(s.array, s.index), " = ", name(s.value)));
      case StatementKind::Load:
        return line(str(at(s.array, s.place), " = load ",
                        s.value < 0 ? "" : name(s.value) + ": ", in_memory(s), many(s)));
      case StatementKind::Store: return line(str("store ", in_memory(s), " = ", name(s.value)));
      case StatementKind::StoreAll:
        return line(str("store ", in_memory(s), many(s), " = ", at(s.array, s.place)));
      case StatementKind::Stream:
        return line(
            str("stream ", in_memory(s), " x ", s.place, " = ", tile_.arrays[s.array].name));
      case StatementKind::Tree:
        return line(
            str("tree ", info(s.op).name, " ", tile_.arrays[s.array].name, " x ", s.index));
      case StatementKind::Update:
        return line(str("update ", info(s.op).name, chosen(s), ": ",
                        s.array >= 0 ? "shared " + at(s.array, s.index) : in_memory(s), " = ",
                        name(s.value)));
      case StatementKind::UpdateAll:
        return line(str("update ", info(s.op).name, " ", tile_.arrays[s.chosen].name, " x ",
                        s.left, " < ", s.place, ": ", in_memory(s), " = ",
                        tile_.arrays[s.array].name, " x", s.width, " of ", s.from));
      case StatementKind::Prefetch: return line(str("prefetch ", in_memory(s), many(s)));
      case StatementKind::For:
        return block(
            str("for ", range(s), s.unrolled ? " unrolled" : "", s.vector ? " vector" : "",
                s.transposed ? " transposed" : "", s.multiplied ? " multiplied" : ""),
            s.body);
      case StatementKind::If:
        return block(s.value >= 0 ? "if " + name(s.value) : str("if ", s.index, " < ", s.place),
                     s.body);
      case StatementKind::Else: return block("else", s.body);
      case StatementKind::Shortcut:
        return block(s.value < 0 ? "shortcut" : "shortcut below " + name(s.value), s.body);
      case StatementKind::Barrier: return line("barrier");
      case StatementKind::ClusterBarrier: return line("cluster_barrier");
      case StatementKind::ClusterStart: return line("cluster_start");
      case StatementKind::Send:
        return line(str("send ", at(s.array, s.index), " = ", name(s.value)));
      case StatementKind::Await: return line("await " + tile_.arrays[s.array].name);
    }
  }

  const Program& program_;
  const Tile& tile_;
  std::string text_;
  int depth_ = 1;
};

}  // namespace

std::string print(const Program& program, const Tile& tile,
                  const std::vector<SizeRange>& when) {
  return TilePrinter(program, tile).print(when);
}

}  // namespace tiny_compile

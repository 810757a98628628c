// How does a tile program read in C++? As it stands, a line for a statement:
//
//   for i1: 100 = first .. last vector { $0 = load x[i1] ; store y[i1] = $0 }
// =>
//   #pragma GCC ivdep
//   for (long long i1 = first; i1 < last; i1++) {
//     const float load_0 = in_x[i1];
//     out_y[i1] = load_0;
//   }
#include "tiny_compile/codegen/cpp_tiles.h"

#include "tiny_compile/base/integer.h"
#include "tiny_compile/codegen/cpp_tile.h"
#include "tiny_compile/codegen/cpp_trees.h"
#include "tiny_compile/codegen/updates.h"
#include "tiny_compile/tile/multiplied.h"
#include "tiny_compile/tile/square.h"
#include "tiny_compile/tile/whole_vectors.h"

namespace tiny_compile {
namespace {

constexpr int64_t kCacheLine = 64;  // bytes

// Which halves nothing but stores of their dtype uses: these round them.
struct Uses {
  std::vector<bool> stored, others;  // of each scalar
};

// What a statement stores as a half, if it does.
DType stored_type(const Program& program, const Tile& tile, const Statement& s) {
  if (s.kind == StatementKind::Store) return program.buffers[s.buffer].type.dtype;
  const bool in_block = s.kind == StatementKind::Set && tile.arrays[s.array].packed;
  return in_block ? tile.arrays[s.array].dtype : DType::f32;
}

void find_uses(const Program& program, const Tile& tile, const Body& body, Uses& uses) {
  for (const Statement& s : body) {
    find_uses(program, tile, s.body, uses);
    if (s.value < 0) continue;
    const Scalar& scalar = tile.kernel.scalars[s.value];
    if (s.kind == StatementKind::Define) {
      for (int operand : scalar.operands) uses.others[operand] = true;
      if (scalar.mask >= 0) uses.others[scalar.mask] = true;
    } else if (is_half(scalar.dtype) && stored_type(program, tile, s) == scalar.dtype) {
      uses.stored[s.value] = true;
    } else {
      uses.others[s.value] = true;
    }
  }
}

class CppTileWriter {
 public:
  CppTileWriter(KernelText& text, const Tile& tile) : text_(text), out_(text.out), tile_(tile) {
    const std::vector<bool> none(tile.kernel.scalars.size());
    Uses uses{none, none};
    find_uses(text.program, tile, tile.body, uses);
    text.scalars.rounds = [uses](int id) { return !uses.stored[id] || uses.others[id]; };
  }

  void write() {
    for (const bool is_kept : {true, false}) {
      for (const Array& array : tile_.arrays)
        if ((array.space == Space::Kept) == is_kept) declare(array);
      if (is_kept) own_.zeroed = own_.bytes.constant();
    }
    write(tile_.body);
  }

  const OwnBytes& own() const { return own_; }

 private:
  static const char* element_type(const Array& array) {
    return array.packed ? c_type(array.dtype) : value_type(array.dtype);
  }

  // What lies in memory follows each other there.
  void declare(const Array& array) {
    const std::string type = element_type(array);
    if (array.space != Space::Memory && array.space != Space::Kept)
      return out_.line(str("alignas(64) ", type, " ", array.name, "[", array.size, "];"));
    out_.line(str(type, "* const __restrict ", array.name, " = (", type, "*)((char*)",
                  text_.own(), " + ", c_text(own_.bytes), ");"));
    own_.bytes = own_.bytes + ceil_div(bytes_of(array), kCacheLine) * kCacheLine;
  }

  void write(const Body& body) {
    for (size_t n = 0; n < body.size(); n++) {
      const bool has_else = n + 1 < body.size() && body[n + 1].kind == StatementKind::Else;
      write(body[n], has_else);
    }
  }

  void write(const Statement& s, bool has_else) {
    switch (s.kind) {
      case StatementKind::Let:
        return text_.declare(
            s.name, s.value < 0 ? c_text(s.index) : text_.scalars.nearest(s.value, s.place));
      case StatementKind::Define: return write_definition(s);
      case StatementKind::Set: return write_set(s);
      case StatementKind::Store: return write_store(s);
      case StatementKind::Stream: return write_stream(s);
      case StatementKind::Tree: return write_tree(s);
      case StatementKind::Update:
      case StatementKind::UpdateAll: return write_update(text_, tile_, s);
      case StatementKind::Ahead: return write_ahead(s);
      case StatementKind::For: return write_for(s);
      case StatementKind::If:
        out_.open(s.value >= 0 ? str("if (", text_.scalars.name(s.value), ")")
                               : str("if (", c_text(s.index), " < ", c_text(s.place), ")"));
        write(s.body);
        return has_else ? out_.close(" else {") : out_.close();
      case StatementKind::Else:
        out_.indent();
        write(s.body);
        return out_.close();
      default: CHECK(false, "one thread does not do this");
    }
  }

  void write_definition(const Statement& s) {
    const Scalar& scalar = tile_.kernel.scalars[s.value];
    const bool is_element = scalar.kind == ScalarKind::Element;
    if (s.array < 0 && !is_element) return out_.line(text_.scalars.definition(s.value));
    const Array& a = tile_.arrays[is_element ? scalar.step : s.array];
    const std::string element =
        str(a.name, "[", c_text(is_element ? scalar.index : s.index), "]");
    out_.line(str("const ", value_type(a.dtype), " ", text_.scalars.name(s.value), " = ",
                  a.packed ? from_storage(text_.calls, a.dtype, element) : element, ";"));
  }

  void write_square(const Square& square) {
    const Array& array = tile_.arrays[square.array];
    const bool is_bool = array.dtype == DType::boolean;  // a byte, as the buffer's are
    const std::string to = str(is_bool ? "(unsigned char*)" : "", array.name);
    out_.line(str(text_.calls("tc_turn"), "(",
                  pointer_name(text_.program.buffers[square.buffer]), " + ",
                  c_text(square.corner), ", ", c_text(square.stride), ", ", to,
                  square.place.is_constant(0) ? "" : " + " + c_text(square.place), ", ",
                  c_text(square.rows), ", ", c_text(square.columns), ");"));
  }

  void write_turned(const Statement& s) {
    const auto lines = turned_lines(tile_, s);
    if (!lines) return write_square(*square_of(tile_, s));
    const TileType type = tile_type(tile_.arrays[lines->array].dtype);
    out_.line(str(text_.calls("tc_turn_lines_" + type.name), "<", lines->width, ">(",
                  in_words(type, lines->lines, 0, true), ", ", c_text(lines->steps), ", ",
                  in_words(type, lines->array, lines->place), ");"));
  }

  // An element's address, as what is multiplied.
  std::string in_words(const TileType& type, int array, const Expr& place,
                       bool is_read = false) const {
    const std::string start = tile_.arrays[array].name;
    return str("(", is_read ? "const " : "", type.type, "*)", start,
               place.is_constant(0) ? "" : " + (" + c_text(place) + ")");
  }

  void write_product(const Statement& s) {
    const Multiplied p = *multiplied_of(tile_, s);
    const TileType type = tile_type(tile_.arrays[p.sums].dtype);
    const int64_t lanes = text_.program.machine.vector / size_of(tile_.arrays[p.sums].dtype);
    const std::string left = p.left >= 0
                                 ? in_words(type, p.left, p.left_place, true)
                                 : str("(const ", type.type, "*)",
                                       pointer_name(text_.program.buffers[p.left_buffer]),
                                       " + (", c_text(p.left_place), ")");
    if (!p.depth.is_constant()) out_.line(str("if (", c_text(p.depth), " > 0)"));
    out_.open(str(text_.calls("tc_tile_" + type.name), "<", p.rows, ", ", p.columns / lanes,
                  ", ", p.lane, ", ", p.step, ">(", left, ", ",
                  in_words(type, p.right, p.right_place, true), ", ", c_text(p.depth), ", ",
                  in_words(type, p.sums, p.sums_place), ", [&](long long ", s.name,
                  ") __attribute__((always_inline))"));
    if (p.asks.empty()) out_.line(str("(void)", s.name, ";"));
    write(p.asks);
    out_.close(");");
  }

  void write_tree(const Statement& s) {
    const Array& a = tile_.arrays[s.array];
    const Expr count = fill_up(s, a);
    out_.line(str(a.name, "[0] = ", tree_call(text_.calls, s.op, a.dtype, a.name, count), ";"));
  }

  // The number of elements that the tree is over: few of them with the identity behind them.
  Expr fill_up(const Statement& s, const Array& a) {
    if (!s.index.is_constant() || s.index.constant() > kChunk) return s.index;
    const int64_t count = s.index.constant(), size = power_of_two_from(count);
    if (count < size)
      out_.line(str("for (int l = ", count, "; l < ", size, "; l++) ", a.name,
                    "[l] = ", literal_text(text_.calls, identity(s.op, a.dtype)), ";"));
    return size;
  }

  // A line of the caches each.
  void write_ahead(const Statement& s) {
    const int64_t step = kCacheLine / size_of(text_.program.buffers[s.buffer].type.dtype);
    const Expr count = s.left.is_constant(0) ? Expr(s.width) : s.left;
    out_.open(str("for (", text_.integer, " ahead = 0; ahead < ", c_text(count),
                  "; ahead += ", step, ")"));
    out_.line(str("__builtin_prefetch(", pointer(s), " + ", c_text(s.index), " + ahead);"));
    out_.close();
  }

  // By whole vectors: the last of them does some elements again.
  void write_in_vectors(const Statement& s, int64_t lanes) {
    const int64_t count = s.index.constant();
    const auto write_loop = [&](int64_t from, int64_t to) {
      out_.line("#pragma GCC ivdep");
      out_.line(str("for (long long ", s.name, " = ", from, "; ", s.name, " < ", to, "; ",
                    s.name, "++) element(", s.name, ");"));
    };
    out_.open("");
    out_.open(
        str("const auto element = [&](long long ", s.name, ") __attribute__((always_inline))"));
    write(s.body);
    out_.close(";");
    write_loop(0, count - count % lanes);
    write_loop(count - lanes, count);
    out_.close();
  }

  void write_for(const Statement& s) {
    if (s.turned) return write_turned(s);
    if (s.multiplied) return write_product(s);
    if (const auto lanes = lanes_of_last(text_.program, tile_, s))
      return write_in_vectors(s, *lanes);
    if (s.vector) out_.line("#pragma GCC ivdep");
    if (s.unrolled) out_.line(str("#pragma GCC unroll ", s.place));
    out_.open(str("for (", text_.integer, " ", s.name, " = ", c_text(s.from), "; ", s.name,
                  " < ", c_text(s.index), "; ", s.name, "++)"));
    write(s.body);
    out_.close();
  }

  std::string stored(DType dtype, int value) const {
    const auto storage = text_.scalars.rounds(value) ? exact_storage : to_storage;
    return storage(text_.calls, dtype, text_.scalars.name(value));
  }

  void write_set(const Statement& s) {
    const Array& a = tile_.arrays[s.array];
    out_.line(str(a.name, "[", c_text(s.index), "] = ",
                  a.packed ? stored(a.dtype, s.value) : text_.scalars.name(s.value), ";"));
  }

  std::string pointer(const Statement& s) const {
    return pointer_name(text_.program.buffers[s.buffer]);
  }

  void write_store(const Statement& s) {
    const DType dtype = text_.program.buffers[s.buffer].type.dtype;
    out_.line(str(pointer(s), "[", c_text(s.index), "] = ", stored(dtype, s.value), ";"));
  }

  void write_stream(const Statement& s) {
    const DType dtype = tile_.arrays[s.array].dtype;
    out_.line(str(text_.calls("tc_stream"), "(", pointer(s), " + ", c_text(s.index), ", ",
                  tile_.arrays[s.array].name, ", (", c_text(s.place), ") * ", size_of(dtype),
                  ");"));
  }

  KernelText& text_;
  Text& out_;
  const Tile& tile_;
  OwnBytes own_;
};

}  // namespace

OwnBytes write_cpp_tile(KernelText& text, const Tile& tile) {
  CppTileWriter writer(text, tile);
  writer.write();
  return writer.own();
}

}  // namespace tiny_compile

// Question: which tile does this text mean? The inverse of tile/text.cpp.
//
//   tile      := 'tile' kernel ['for' ranges] 'grid' size ['cluster' n] 'block' n 'warps' ['resident' n] ['alone'] '{' {array} {statement} '}'
//              | 'tile' kernel 'units' size ['grain' size] ['together' n] '{' {array} {statement} '}'      on a CPU
//   array     := ('array' | 'shared' | 'cluster' | 'l1' | 'l2' | 'memory' | 'kept') name ':' dtype '[' size ']' ['packed']
//   statement := name ':' size '=' (index | '$' n)                        Let
//              | ('$' n | 'r' n) '=' (value | element ['of lane ^' index] | 'votes' value ['below'])  Define
//              | 'divisor' value
//              | element '=' (value | 'load' ['$' n ':'] place [many])    Set, Load
//              | 'store' place [many] '=' (value | element)               Store, StoreAll
//              | 'prefetch' place [many]
//              | 'tree' ('sum' | 'prod' | 'max' | 'min') array 'x' index
//              | 'update' op [value '<' index] ':' (place | 'shared' element) '=' value      Update
//              | 'update' op array 'x' index '<' index ':' place '=' array 'x' n 'of' index
//              | 'stream' place 'x' index '=' array
//              | 'for' name '<' n ['unrolled'] '{' {statement} '}'
//              | 'for' name ':' n '=' index '..' index ['vector' | 'transposed' | 'multiplied'] '{' {statement} '}'
//              | 'if' (index '<' index | '$' n) '{' {statement} '}'       If; behind one:
//              | 'else' '{' {statement} '}'
//              | 'send' element '=' value | 'await' array
//              | 'barrier' | 'cluster_barrier' | 'cluster_start'
//   many      := 'x' n ['of' index]
//   place and element: name '[' index ']'; value: see loops/parse_value.cpp, its operands have names
//
// `$n` is the kernel's value of that number until a line says another; what a line says holds from
// there on. Invariant: parse_tile(p, print(p, t)) == t for every numbered t.
#include "tiny_compile/tile/parse.h"

#include "tiny_compile/tile/parse_move.h"

namespace tiny_compile {
namespace {

constexpr int kDeepest = 60;  // loops in loops

class TileParser : MoveParser {
 public:
  TileParser(const Program& program, std::string_view text, size_t at)
      : MoveParser(program, text, at) {}

  ParsedTile parse() {
    skip_space();
    parse_head();
    ScalarTable table(tile_.kernel);
    table_ = &table;
    while (parse_array()) skip_space();
    tile_.body = body();
    skip_space();
    return {number_, sized_, numbered(std::move(tile_), own_scalars_), at_, std::move(lines_)};
  }

 private:
  Body body() {
    const size_t names = names_.size();
    if (++depth_ > kDeepest) error(at_, str("more than ", kDeepest, " loops in loops"));
    Body statements;
    while (skip_space(), !next_is('}')) {
      lines_.push_back(at_);
      statements.push_back(statement());
      end_line();
    }
    expect('}', "the statements");
    depth_--;
    names_.resize(names);
    return statements;
  }

  Statement statement() {
    const size_t start = at_;
    if (next_is('$')) return definition();
    if (at_array()) return set_or_load();
    const std::string_view first = word();
    if (first == "for") return loop();
    if (first == "if") return condition();
    if (first == "prefetch") return ask_prefetch();
    if (first == "else") return open(), otherwise(body());
    if (first == "shortcut") {
      const int highest = accept_word("below") ? value() : -1;
      return open(), shortcut(body(), highest);
    }
    if (first == "store") return store_one_or_many();
    if (first == "stream") return stream_block();
    if (first == "tree") return reduce_array();
    if (first == "update") return update_one_or_many();
    if (first == "barrier") return barrier();
    if (first == "cluster_barrier") return cluster_barrier();
    if (first == "cluster_start") return cluster_start();
    if (first == "await") return await(look_up(arrays_, "array"));
    if (first == "send") return send_one();
    if (first == "divisor") return divisor(value());
    at_ = start;
    if (register_of(first)) return definition();
    if (is_identifier(first)) return integer();
    error(start,
          "expected a statement: NAME: 8 = ..., $N = ..., ARRAY[...] = ..., store, for, "
          "if, shortcut, divisor or barrier");
  }

  Statement integer() {
    const std::string name = new_name("the integer's name");
    if (next_is('[')) error(at_ - name.size(), str("no array '", name, "' is declared above"));
    expect(':', "the name (an integer below 8 is named k: 8 = ...)");
    const Expr extent = sized("an integer's extent");
    expect('=', "the extent");
    skip_blanks();
    const int chosen = next_is('$') ? value() : -1;
    const Expr value = chosen < 0 ? index() : Expr(0);
    new_integer(name, extent);
    return chosen < 0 ? let(name, extent, value) : let_chosen(name, extent, chosen);
  }

  Statement definition() {
    const size_t start = at_;
    const bool is_register = !accept('$');
    const int64_t label = is_register ? -1 : number();
    const int own = is_register ? value() : -1;
    expect('=', "the value's name");
    if (at_array()) return read(is_register ? own : bound(label), label);
    if (is_register) error(start, "a register is read from an array, r0 = r0_of_row[0]");
    return define(accept_word("votes") ? votes(label, bound(label))
                                       : said(label, bound(label)));
  }

  // What is computed elsewhere is kept in the array; otherwise its element is the value.
  Statement read(int scalar, int64_t label) {
    const auto [array, place] = element();
    const bool crosses = accept_word("of");
    if (!crosses && scalar >= 0 && kernel_->scalars[scalar].kind != ScalarKind::Element)
      return define_from(scalar, array, place);
    Expr lane = 0;
    if (crosses) {
      expect_word("lane");
      expect('^', "lane");
      lane = index();
      if (lane.is_constant(0)) error(at_, "lane ^ 0 is the lane itself");
    }
    const int id = add_element(tile_, array, place, lane);
    const bool is_same = scalar >= 0 && kernel_->scalars[scalar] == kernel_->scalars[id];
    return define(is_same ? scalar : values_[label] = id);
  }

  // q < 16, or i1: 100 = first .. last
  Statement loop() {
    const std::string name = new_name("the loop's name");
    Statement s;
    if (accept(':')) {
      const Expr extent = sized("a loop's extent");
      expect('=', "the extent");
      const Expr from = index();
      expect('.', "where the loop begins"), expect('.', "where the loop begins");
      s = for_range(name, extent, from, index(), {});
    } else {
      expect('<', "the loop's name");
      const Expr extent = sized("a loop's extent");
      s = for_range(name, extent, 0, extent, {});
    }
    s.unrolled = accept_word("unrolled");
    s.vector = accept_word("vector");
    s.transposed = accept_word("transposed");
    s.multiplied = accept_word("multiplied");
    open();
    new_integer(name, s.place);
    s.body = body();
    names_.pop_back();
    return s;
  }

  Statement condition() {
    skip_blanks();
    if (next_is('$')) {
      const int holds = value();
      return open(), if_true(holds, body());
    }
    const Expr lesser = index();
    expect('<', "the index");
    const Expr greater = index();
    open();
    return if_less(lesser, greater, body());
  }

  std::vector<size_t> lines_;  // where statements begin, in order
  int depth_ = 0;
};

}  // namespace

ParsedTile parse_tile_at(const Program& program, std::string_view text, size_t at) {
  return TileParser(program, text, at).parse();
}

Tile parse_tile(const Program& program, std::string_view text) {
  ParsedTile parsed = parse_tile_at(program, text, 0);
  if (parsed.end < text.size()) fail_in_text(text, parsed.end, "text after the tile's '}'");
  return std::move(parsed.tile);
}

}  // namespace tiny_compile

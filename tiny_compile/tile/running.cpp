// How do running results follow each other? The numeric contract's scans (graph/scan.h) combine a group of
// 16 one after the other, and what stands before a group are the totals of those before it, by the same
// rule. So for the groups of 16 groups, of 256, ... two numbers are enough, whatever the row's length:
//
//   group 15 is over:   sums[0] = sums[0] + total        the 16 groups are over as well:
//                       sums[1] = sums[1] + sums[0];  sums[0] = nothing
//                       stood[0] = stood[1] + sums[1]
//                       stands = stood[0] + sums[0]      before group 16
//
// Of cummax and cummin a result is a value and its place: of two the later where it reaches the first, or
// is NaN.
#include "tiny_compile/tile/running.h"

#include "tiny_compile/tile/accumulator.h"

namespace tiny_compile {

Running::Running(Tile& tile, const Step& step, DType value, int64_t length)
    : tile_(tile),
      op_(step.op),
      places_(gives_places(step)),
      type_(compute_type(value)),
      place_(length <= INT32_MAX ? DType::i32 : DType::i64) {}

bool Running::is_costly() const {
  const std::optional<Op> op = combiner(op_);
  return op && tiny_compile::is_costly(*op);
}

Stood Running::identity() {
  Stood nothing{add_constant(tile_, tiny_compile::identity(op_, type_))};
  if (places_) nothing.place = add_constant(tile_, Literal::of_integer(place_, -1));
  return nothing;
}

// Whether b is taken.
int Running::later(Body& body, const Stood& a, const Stood& b) {
  const auto ask = [&](Op op, int x, int y) {
    return computed(tile_, body, op, DType::boolean, {x, y});
  };
  int wins = ask(op_ == Op::cummax || op_ == Op::maximum ? Op::ge : Op::le, b.value, a.value);
  if (is_float(type_)) wins = ask(Op::bitwise_or, wins, ask(Op::ne, b.value, b.value));
  if (!places_) return wins;
  const int zero = add_constant(tile_, Literal::of_integer(place_, 0));
  return ask(Op::bitwise_and, wins, ask(Op::ge, b.place, zero));
}

Stood Running::both(Body& body, const Stood& a, const Stood& b) {
  if (const std::optional<Op> op = combiner(op_))
    return {computed(tile_, body, *op, type_, {a.value, b.value})};
  return chosen(body, later(body, a, b), b, a);
}

Stood Running::chosen(Body& body, int which, const Stood& a, const Stood& b) {
  Stood result{computed(tile_, body, Op::where, type_, {which, a.value, b.value})};
  if (places_)
    result.place = computed(tile_, body, Op::where, place_, {which, a.place, b.place});
  return result;
}

int Running::is_less(Body& body, const Expr& a, const Expr& b) {
  const int left = as_data(tile_, body, a), right = as_data(tile_, body, b);
  return computed(tile_, body, Op::lt, DType::boolean, {left, right});
}

Stood Running::element(Body& body, int value, const Expr& index, const Expr& length,
                       bool asks) {
  Stood result{value};
  if (places_) {
    const int place = add_index(tile_, index);
    body.push_back(define(place));
    result.place =
        place_ == DType::i64 ? place : computed(tile_, body, Op::cast, place_, {place});
  }
  if (!asks) return result;
  return chosen(body, is_less(body, index, length), result, identity());
}

StoodArray Running::array(const char* what, int64_t size, Space space) {
  const std::string name = what + std::to_string(tile_.arrays.size());
  StoodArray result{add_array(tile_, {name, type_, size, space})};
  if (places_) result.places = add_array(tile_, {name + "_at", place_, size, space});
  return result;
}

StoodArray Running::array(const char* what, int64_t size) {
  return array(what, size, is_on_cpu(tile_) ? Space::L1 : Space::Register);
}

Stood Running::read(Body& body, const StoodArray& from, const Expr& index) {
  Stood result{add_element(tile_, from.values, index)};
  body.push_back(define(result.value));
  if (!places_) return result;
  result.place = add_element(tile_, from.places, index);
  body.push_back(define(result.place));
  return result;
}

Body Running::set(const StoodArray& to, const Expr& index, const Stood& value) const {
  Body body = {tiny_compile::set(to.values, index, value.value)};
  if (places_) body.push_back(tiny_compile::set(to.places, index, value.place));
  return body;
}

// --- groups ----------------------------------------------------------------------------------------

RunningGroups::RunningGroups(Running& running, int levels, int64_t rows, Expr row)
    : running_(running),
      levels_(levels),
      rows_(rows),
      row_(std::move(row)),
      sums_(running.array("sums", levels * rows)),
      stood_(running.array("stood", levels * rows)) {}

Body RunningGroups::begin(const StoodArray& stands) {
  Body body;
  const Stood start = running_.read(body, stands, row_);
  for (int level = 0; level < levels_; level++) {
    append(body, running_.set(sums_, at(level), running_.identity()));
    append(body, running_.set(stood_, at(level), start));
  }
  return body;
}

// `done` groups of the level are over, and maybe one of the next level.
Body RunningGroups::over(const Expr& done, int level) {
  if (level + 1 == levels_) return {};
  Body body;
  const Stood so_far = running_.read(body, sums_, at(level + 1)),
              group = running_.read(body, sums_, at(level)),
              upto = running_.both(body, so_far, group);
  append(body, running_.set(sums_, at(level + 1), upto));
  append(body, running_.set(sums_, at(level), running_.identity()));
  append(body, over(floor_div(done, kGroup), level + 1));
  const Stood before = running_.read(body, stood_, at(level + 1)),
              since = running_.read(body, sums_, at(level + 1));
  append(body, running_.set(stood_, at(level), running_.both(body, before, since)));
  return {if_less(mod(done, kGroup), 1, std::move(body))};
}

Body RunningGroups::next(const Expr& number, const Stood& total, const StoodArray& stands) {
  Body body;
  const Stood so_far = running_.read(body, sums_, at(0));
  append(body, running_.set(sums_, at(0), running_.both(body, so_far, total)));
  append(body, over(number + 1, 0));
  const Stood before = running_.read(body, stood_, at(0)),
              since = running_.read(body, sums_, at(0));
  append(body, running_.set(stands, row_, running_.both(body, before, since)));
  return body;
}

Stood RunningGroups::total(Body& body, const Stood& since) {
  Stood all = since;
  for (int level = 0; level < levels_; level++)
    all = running_.both(body, running_.read(body, sums_, at(level)), all);
  return all;
}

}  // namespace tiny_compile

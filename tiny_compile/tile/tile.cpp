// The tile program as a value: how its statements are made.
#include "tiny_compile/tile/tile.h"

#include <algorithm>

namespace tiny_compile {
namespace {

constexpr int kWord = 4;  // bytes that a message has at least

}  // namespace

const char* name_of(Space space) {
  switch (space) {
    case Space::Register: return "array";
    case Space::Shared: return "shared";
    case Space::Cluster: return "cluster";
    case Space::L1: return "l1";
    case Space::L2: return "l2";
    case Space::Kept: return "kept";
    default: return "memory";
  }
}

Expr block_of(const Tile& tile) { return Expr::index("block", tile.grid); }
Expr rank_of(const Tile& tile) { return Expr::index("rank", tile.cluster); }
Expr warp_of(const Tile& tile) { return Expr::index("warp", tile.warps); }
Expr lane_of_warp() { return Expr::index("lane", 32); }
Expr thread_of(const Tile& tile) { return Expr::index("thread", 32 * tile.warps); }
Expr begin_of(const Tile& tile) { return Expr::index("begin", tile.units + 1); }
Expr end_of(const Tile& tile) { return Expr::index("end", tile.units + 1); }

std::vector<Expr> given(const Tile& t) {
  if (is_on_cpu(t)) return {begin_of(t), end_of(t)};
  return {block_of(t), rank_of(t), warp_of(t), lane_of_warp(), thread_of(t)};
}

Statement let(const std::string& name, const Expr& extent, const Expr& value) {
  Statement s;
  s.kind = StatementKind::Let;
  s.name = name;
  s.index = value;
  s.place = extent;
  return s;
}

Statement let_chosen(const std::string& name, const Expr& extent, int value) {
  Statement s = let(name, extent, 0);
  s.value = value;
  return s;
}

Statement define(int scalar) {
  Statement s;
  s.kind = StatementKind::Define;
  s.value = scalar;
  return s;
}

Statement divisor(int scalar) {
  Statement s = define(scalar);
  s.kind = StatementKind::Divisor;
  return s;
}

Statement define_from(int scalar, int array, const Expr& index) {
  Statement s = set(array, index, scalar);
  s.kind = StatementKind::Define;
  return s;
}

Statement set(int array, const Expr& index, int value) {
  Statement s;
  s.kind = StatementKind::Set;
  s.array = array;
  s.index = index;
  s.value = value;
  return s;
}

Statement load_vector(int array, const Expr& place, int buffer, const Expr& index, int width) {
  Statement s;
  s.kind = StatementKind::Load;
  s.array = array;
  s.place = place;
  s.buffer = buffer;
  s.index = index;
  s.width = width;
  return s;
}

Statement store(int buffer, const Expr& index, int value) {
  Statement s;
  s.kind = StatementKind::Store;
  s.buffer = buffer;
  s.index = index;
  s.value = value;
  return s;
}

Statement store_vector(int buffer, const Expr& index, int array, const Expr& place, int width) {
  Statement s = load_vector(array, place, buffer, index, width);
  s.kind = StatementKind::StoreAll;
  return s;
}

Statement stream(int buffer, const Expr& index, int array, const Expr& count) {
  Statement s = load_vector(array, count, buffer, index, 1);
  s.kind = StatementKind::Stream;
  return s;
}

Statement tree_over(Op op, int array, const Expr& count) {
  Statement s;
  s.kind = StatementKind::Tree;
  s.op = op;
  s.array = array;
  s.index = count;
  return s;
}

Statement update(Op op, int buffer, const Expr& index, const Expr& limit, int chosen,
                 int value) {
  Statement s = store(buffer, index, value);
  s.kind = StatementKind::Update;
  s.op = op;
  s.place = limit;
  s.chosen = chosen;
  return s;
}

Statement update_at(Op op, int buffer, const Expr& index, int value) {
  return update(op, buffer, index, {}, -1, value);
}

Statement add_to(int array, const Expr& index, const Expr& limit, int chosen, int value) {
  Statement s = update(Op::scatter_add, -1, index, limit, chosen, value);
  s.array = array;
  return s;
}

Statement ahead_of(int buffer, const Expr& index, int64_t width) {
  Statement s = load_vector(-1, {}, buffer, index, static_cast<int>(width));
  s.kind = StatementKind::Prefetch;
  return s;
}

Statement for_each(const std::string& name, int64_t extent, bool unrolled, Body body) {
  Statement s = for_range(name, extent, 0, extent, std::move(body));
  s.unrolled = unrolled;
  return s;
}

Statement for_range(const std::string& name, const Expr& extent, const Expr& from,
                    const Expr& to, Body body) {
  Statement s;
  s.kind = StatementKind::For;
  s.name = name;
  s.index = to;
  s.place = extent;
  s.from = from;
  s.body = std::move(body);
  return s;
}

Statement if_less(const Expr& index, const Expr& than, Body body) {
  Statement s;
  s.kind = StatementKind::If;
  s.index = index;
  s.place = than;
  s.body = std::move(body);
  return s;
}

static Statement with_body(StatementKind kind, Body body) {
  Statement s;
  s.kind = kind;
  s.body = std::move(body);
  return s;
}

Statement if_true(int value, Body body) {
  Statement s = with_body(StatementKind::If, std::move(body));
  s.value = value;
  return s;
}

Statement otherwise(Body body) { return with_body(StatementKind::Else, std::move(body)); }

Statement shortcut(Body body, int highest) {
  Statement s = with_body(StatementKind::Shortcut, std::move(body));
  s.value = highest;
  return s;
}

Statement barrier() { return {}; }

Statement cluster_barrier() { return with_body(StatementKind::ClusterBarrier, {}); }

Statement cluster_start() { return with_body(StatementKind::ClusterStart, {}); }

Statement send(int array, const Expr& index, int value) {
  Statement s = set(array, index, value);
  s.kind = StatementKind::Send;
  return s;
}

Body sent(Body body) {
  for (Statement& s : body) {
    if (s.kind == StatementKind::Set) s.kind = StatementKind::Send;
  }
  return body;
}

Statement await(int array) {
  Statement s;
  s.kind = StatementKind::Await;
  s.array = array;
  return s;
}

bool can_be_sent(DType dtype) { return size_of(compute_type(dtype)) >= kWord; }

bool contains(const Statement& statement, StatementKind kind) {
  return statement.kind == kind ||
         std::any_of(statement.body.begin(), statement.body.end(),
                     [&](const Statement& s) { return contains(s, kind); });
}

bool contains_any(const Body& body, StatementKind kind) {
  return std::any_of(body.begin(), body.end(),
                     [&](const Statement& s) { return contains(s, kind); });
}

int64_t bytes_of_element(const Array& array) {
  return static_cast<int64_t>(size_of(array.packed ? array.dtype : compute_type(array.dtype)));
}

Expr bytes_of(const Array& array) { return array.size * bytes_of_element(array); }

void append(Body& body, Body more) {
  for (Statement& statement : more) body.push_back(std::move(statement));
}

}  // namespace tiny_compile

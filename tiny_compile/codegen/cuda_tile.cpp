// How does a tile program read in CUDA C? As it stands, a line for a statement; an element that is used once, and
// that nothing has changed until then, is read where it is used:
//
//   $7 = sum2[p]; $8 = sum2[p + 8]; $9 = add($7, $8); sum2[p] = $9
//   =>  sum2[p] = sum2[p] + sum2[p + 8];
#include "tiny_compile/codegen/cuda_tile.h"

#include <algorithm>
#include <set>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/codegen/cuda_memory_helpers.h"
#include "tiny_compile/codegen/cuda_scalar.h"
#include "tiny_compile/codegen/tile_uses.h"
#include "tiny_compile/codegen/updates.h"
#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/bounds.h"

namespace tiny_compile {
namespace {

// A thread's halves, two to a register.
bool is_kept(const Array& array) { return array.packed && array.space == Space::Register; }

constexpr int64_t kDeclared = 47 << 10;  // bytes of arrays, beside what awaits them

// The arrays that blocks wait for, in the order of the text.
std::vector<int> awaited_in(const Body& body) {
  std::vector<int> arrays;
  for (const Statement& s : body) {
    if (s.kind == StatementKind::Await) arrays.push_back(s.array);
  }
  return arrays;
}

// Whether ints hold all that the statements count with.
bool fits_int(const Body& body) {
  return std::all_of(body.begin(), body.end(), [](const Statement& s) {
    return largest_part(s.index) < kMostInt && largest_part(s.from) < kMostInt &&
           largest_part(s.place) < kMostInt && largest_part(s.left) < kMostInt &&
           fits_int(s.body);
  });
}

// Whether statements count with an integer of this name.
bool name_it(const Body& body, const std::vector<Scalar>& scalars, const Symbol& name) {
  return std::any_of(body.begin(), body.end(), [&](const Statement& s) {
    const auto is_named = [&](const Expr& index) { return depends_on(index, name); };
    const bool by_value =
        s.value >= 0 &&
        (is_named(scalars[s.value].index) ||
         std::any_of(scalars[s.value].limits.begin(), scalars[s.value].limits.end(), is_named));
    return by_value || depends_on(s.index, name) || depends_on(s.place, name) ||
           depends_on(s.left, name) || depends_on(s.from, name) ||
           name_it(s.body, scalars, name);
  });
}

// Arrays begin at multiples of an access.
int64_t place_of_next(const Array& array) {
  return ceil_divide(bytes_of(array).constant(), 16) * 16;
}

// Of the arrays of a block, where they are more than a kernel may declare.
int64_t asked_bytes(const Tile& tile) {
  int64_t all = 0, bytes = 0;
  for (const Array& array : tile.arrays) {
    if (array.space == Space::Register) continue;
    (array.space == Space::Shared ? bytes : all) += place_of_next(array);
  }
  return all + bytes > kDeclared ? bytes : 0;
}

class TileWriter {
 public:
  TileWriter(CudaText& text, const Tile& tile)
      : text_(text),
        out_(text.out),
        tile_(tile),
        awaited_(awaited_in(tile.body)),
        asked_(asked_bytes(tile)),
        is_aligned_(folds_rows(tile.kernel) ||
                    schedule_of(tile.kernel).strategy != Strategy::Layouts),
        uses_(uses_of(tile)) {
    std::vector<int> stored(uses_.counts.size());
    count_stored(tile.body, stored);
    text_.scalars.rounds = [this, stored](int id) { return stored[id] < uses_.counts[id]; };
    text_.scalars.is_computed = [this](int id) { return !uses_.taken[id]; };
    text.scalars.element = [this](int id) {
      const bool here = is_element(id) && is_written_where_used(id);
      return here ? element(tile_.kernel.scalars[id]) : std::string();
    };
  }

  void write() {
    if (names("thread")) out_.line("const int thread = threadIdx.x;");
    if (names("warp") || names("lane") || !names("thread") || counts_below()) {
      out_.line("const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;");
      if (tile_.warps > 1)  // which answers most questions whether a register has an element
        out_.line(str("__builtin_assume(warp < ", tile_.warps, ");"));
    }
    const int64_t cluster = tile_.cluster;
    const std::string of_cluster = cluster == 1 ? "" : str(" / ", cluster);
    if (names("block"))
      out_.line(str("const ", text_.integer, " block = blockIdx.x", of_cluster, ";"));
    if (cluster > 1) out_.line(str("const int rank = blockIdx.x % ", cluster, ";"));
    if (asked_ > 0) out_.line(str(text_.calls("TC_SHARED"), "(shared, ", asked_, ");"));
    for (const Array& array : tile_.arrays) declare(array);
    expect_arrays();
    if (chooses_places()) {
      text_.wrong = "wrong";
      out_.line("tc_wrong wrong = {0, -1};");
    }
    write(tile_.body, Evaluation());
    if (chooses_places()) out_.line("tc_tell(wrong);");
  }

 private:
  bool names(const char* integer) const {
    return name_it(tile_.body, tile_.kernel.scalars, integer);
  }
  bool counts_below() const {
    const std::vector<Scalar>& all = tile_.kernel.scalars;
    return std::any_of(all.begin(), all.end(), [](const Scalar& s) {
      return s.kind == ScalarKind::Votes && s.step == 1;
    });
  }

  // Halves that are only put in arrays from which vectors are stored: that rounds them, in pairs.
  void count_stored(const Body& body, std::vector<int>& stored) const {
    for (const Statement& s : body) {
      count_stored(s.body, stored);
      if (s.kind != StatementKind::Set) continue;
      const Array& array = tile_.arrays[s.array];
      stored[s.value] += is_half(array.dtype) && !array.packed && !uses_.read.count(s.array);
    }
  }

  void declare(const Array& array) {
    const int64_t size =
        array.size.constant() / (array.space == Space::Cluster ? tile_.cluster : 1);
    if (is_kept(array))
      return out_.line(str(text_.calls("tc_kept"), "<", c_type(array.dtype), ", ", size, "> ",
                           array.name, " = {};"));
    const std::string type = array.packed ? c_type(array.dtype) : value_type(array.dtype);
    if (array.space == Space::Shared && asked_ > 0) {
      out_.line(str(type, "* const ", array.name, " = (", type, "*)(shared + ", place_, ");"));
      place_ += place_of_next(array);
      return;
    }
    const char* where = array.space == Space::Register ? ""
                        : is_aligned_                  ? "__shared__ alignas(16) "
                                                       : "__shared__ ";
    out_.line(str(where, type, " ", array.name, "[", size, "];"));
  }

  // Bytes are counted as they arrive, from before the first block sends.
  void expect_arrays() {
    if (awaited_.empty()) return;
    std::vector<std::string> bytes;
    for (int a : awaited_) {
      const Array& array = tile_.arrays[a];
      bytes.push_back(
          str(array.size.constant() / tile_.cluster * size_of(compute_type(array.dtype))));
    }
    out_.line(str("__shared__ unsigned long long meeting[", bytes.size(), "];"));
    out_.line(str("const unsigned bytes[] = {", join(bytes, ", "), "};"));
    out_.line(text_.calls("tc_expect") + "(meeting, bytes);");
  }

  std::string meeting(int array) const {
    const auto at = std::find(awaited_.begin(), awaited_.end(), array);
    return str("&meeting[", at - awaited_.begin(), "]");
  }

  void write_send(const Statement& s) {
    const Array& array = tile_.arrays[s.array];
    const Expr block = mod(s.index, tile_.cluster), place = floor_div(s.index, tile_.cluster);
    out_.line(str("tc_send(&", array.name, "[", text_.scalars.index(place), "], ",
                  text_.scalars.name(s.value), ", ", meeting(s.array), ", ",
                  text_.scalars.index(block), ");"));
  }

  bool chooses_places() const {
    const std::vector<Scalar>& all = tile_.kernel.scalars;
    return std::any_of(all.begin(), all.end(), [](const Scalar& s) {
      return !s.limits.empty() && !s.operands.empty();
    });
  }
  bool is_element(int id) const { return tile_.kernel.scalars[id].kind == ScalarKind::Element; }
  // A shuffle is a statement: what `?:` leaves out must not hold one.
  bool is_written_where_used(int id) const {
    return uses_.counts[id] == 1 && uses_.standing[id] &&
           tile_.kernel.scalars[id].limits.empty();
  }

  std::string at(int array, const Expr& index) const {
    const Array& a = tile_.arrays[array];
    if (is_kept(a)) return str(a.name, ".at(", text_.scalars.index(index), ")");
    if (a.space != Space::Cluster) return str(a.name, "[", text_.scalars.index(index), "]");
    const Expr block = mod(index, tile_.cluster), place = floor_div(index, tile_.cluster);
    const std::string own = str(a.name, "[", text_.scalars.index(place), "]");
    if (block == rank_of(tile_)) return own;
    text_.calls("tc_cluster_barrier");
    return str("*tc_cluster_at(&", own, ", ", text_.scalars.index(block), ")");
  }

  std::string read(int array, const Expr& index) const {
    const Array& a = tile_.arrays[array];
    const std::string place = at(array, index);
    return a.packed && !is_kept(a) ? from_storage(text_.calls, a.dtype, place) : place;
  }

  std::string element(const Scalar& scalar) const {
    const std::string own = read(scalar.step, scalar.index);
    if (scalar.limits.empty()) return own;
    const std::string lane = text_.scalars.index(scalar.limits[0]);
    return str("__shfl_xor_sync(0xffffffffu, ", own, ", ", lane, ")");
  }

  std::string value(int id, const Evaluation& how) const {
    const Scalar& scalar = tile_.kernel.scalars[id];
    if (scalar.kind != ScalarKind::Votes) return cuda_value(text_, id, how);
    const std::string votes =
        str("__ballot_sync(0xffffffffu, ", text_.scalars.name(scalar.operands[0]), ")");
    return str("__popc(", votes, scalar.step == 1 ? " & ((1u << lane) - 1u))" : ")");
  }

  // Whether the value is written where the statement behind its definition puts it.
  bool is_put_at_once(const Body& body, size_t n) const {
    const Statement& s = body[n];
    return n + 1 < body.size() && s.kind == StatementKind::Define && s.array < 0 &&
           body[n + 1].kind == StatementKind::Set && body[n + 1].value == s.value &&
           uses_.counts[s.value] == 1 && !is_element(s.value) &&
           !text_.scalars.is_trivial(s.value);
  }

  // What a divisor takes is known to the statements behind it.
  void write(const Body& body, Evaluation how) {
    for (size_t n = 0; n < body.size(); n++) {
      const Statement& s = body[n];
      if (s.kind == StatementKind::Divisor)
        write_divisor(s, how);
      else if (is_put_at_once(body, n))
        write_set(body[++n], value(s.value, how));
      else
        write(s, how);
    }
  }

  std::string condition(const Statement& s) const {
    if (s.value >= 0) return text_.scalars.name(s.value);
    return str(text_.scalars.index(s.index), " < ", text_.scalars.index(s.place));
  }

  void write_divisor(const Statement& s, Evaluation& how) {
    if (std::count(how.divisors.begin(), how.divisors.end(), s.value) > 0) return;
    declare_divisor(text_, s.value);
    how.divisors.push_back(s.value);
  }

  void write(const Statement& s, const Evaluation& how) {
    switch (s.kind) {
      case StatementKind::Let:
        return text_.declare(s.name, s.value < 0 ? text_.scalars.index(s.index)
                                                 : text_.scalars.nearest(s.value, s.place));
      case StatementKind::Define: return write_definition(s, how);
      case StatementKind::Set: return write_set(s, text_.scalars.name(s.value));
      case StatementKind::Load: return write_load(s);
      case StatementKind::Store: return write_store(s);
      case StatementKind::StoreAll: return write_store_all(s);
      case StatementKind::Ahead:
        return out_.line(
            str(text_.calls("tc_ahead"), "(", address(s.buffer, s.index), ", ", s.width, ");"));
      case StatementKind::For: return write_for(s, how);
      case StatementKind::If:
        out_.open(str("if (", condition(s), ")"));
        write(s.body, how);
        return out_.close();
      case StatementKind::Else:
        out_.open("else");
        write(s.body, how);
        return out_.close();
      case StatementKind::Shortcut: return write_shortcut(s, how);
      case StatementKind::Barrier: return out_.line("__syncthreads();");
      case StatementKind::ClusterBarrier:
        return out_.line(text_.calls("tc_cluster_barrier") + "();");
      case StatementKind::ClusterStart: return out_.line("tc_blocks_are_there();");
      case StatementKind::Send: return write_send(s);
      case StatementKind::Await: return out_.line(str("tc_await(", meeting(s.array), ");"));
      case StatementKind::Update: return write_update(text_, tile_, s);
      case StatementKind::Divisor: CHECK(false, "its body writes it");
      case StatementKind::UpdateAll:
      case StatementKind::Stream:
      case StatementKind::Tree: CHECK(false, "a CPU's");
    }
  }

  void write_definition(const Statement& s, const Evaluation& how) {
    const Scalar& scalar = tile_.kernel.scalars[s.value];
    if (s.array < 0 && is_element(s.value) && is_written_where_used(s.value)) return;
    const std::string value = s.array >= 0          ? read(s.array, s.index)
                              : is_element(s.value) ? element(scalar)
                                                    : this->value(s.value, how);
    out_.line(str("const ", value_type(scalar.dtype), " ", text_.scalars.name(s.value), " = ",
                  value, ";"));
    text_.behind_definition(s.value);
  }

  void write_set(const Statement& s, const std::string& value) {
    const Array& a = tile_.arrays[s.array];
    const std::string stored = a.packed ? exact_storage(text_.calls, a.dtype, value) : value;
    out_.line(is_kept(a)
                  ? str(a.name, ".keep(", text_.scalars.index(s.index), ", ", stored, ");")
                  : str(at(s.array, s.index), " = ", stored, ";"));
  }

  std::string address(int buffer, const Expr& index,
                      const std::vector<int>& chosen = {}) const {
    return str(pointer_name(text_.program.buffers[buffer]), " + ",
               text_.scalars.index(index, chosen));
  }

  // "if (fits_0_50257) " where data chooses the places that are read.
  std::string where_in_range(const Scalar& load) const {
    std::vector<std::string> all;
    for (size_t k = 0; k < load.operands.size(); k++)
      all.push_back(text_.scalars.in_range(load.operands[k], load.limits[k]));
    return str("if (", join(all, " && "), ") ");
  }

  // Of a vector that may end beyond the last element.
  static std::string helper(const Statement& s, const std::string& whole) {
    return s.left.is_constant(0) ? whole : whole + "_left";
  }
  std::string left(const Statement& s) const {
    return s.left.is_constant(0) ? "" : ", " + text_.scalars.index(s.left);
  }

  void write_load(const Statement& s) {
    const Array& array = tile_.arrays[s.array];
    const Scalar chosen = s.value < 0 ? Scalar{} : tile_.kernel.scalars[s.value];
    const std::string from = address(s.buffer, s.index, chosen.operands),
                      where = s.value < 0 ? "" : where_in_range(chosen);
    if (is_kept(array))
      return out_.line(str(where, array.name, ".read<", s.width, ">(",
                           text_.scalars.index(s.place), ", ", from, ");"));
    const bool half = is_half(text_.program.buffers[s.buffer].type.dtype);
    if (half) text_.calls(kElementOfPack);
    out_.line(str(where, text_.calls(helper(s, half ? "tc_read_halves" : "tc_read")), "<",
                  s.width, ">(&", at(s.array, s.place), ", ", from, left(s), ");"));
  }

  void write_store_all(const Statement& s) {
    const bool half = is_half(text_.program.buffers[s.buffer].type.dtype);
    out_.line(str(text_.calls(helper(s, half ? "tc_write_halves" : "tc_write")), "<", s.width,
                  ">(", address(s.buffer, s.index), ", &", at(s.array, s.place), left(s),
                  ");"));
  }

  void write_store(const Statement& s) {
    const Buffer& buffer = text_.program.buffers[s.buffer];
    out_.line(str(pointer_name(buffer), "[", text_.scalars.index(s.index), "] = ",
                  exact_storage(text_.calls, buffer.type.dtype, text_.scalars.name(s.value)),
                  ";"));
  }

  void write_for(const Statement& s, const Evaluation& how) {
    if (s.unrolled || (!tile_.alone && is_even(s)))  // else it is the compiler's to say
      out_.line(s.unrolled ? "#pragma unroll" : "#pragma unroll 1");
    out_.open(str("for (", s.unrolled ? "int" : text_.integer, " ", s.name, " = ",
                  text_.scalars.index(s.from), "; ", s.name, " < ",
                  text_.scalars.index(s.index), "; ", s.name, "++)"));
    write(s.body, how);
    out_.close();
  }

  // Either way, by what is known of all exponents.
  void write_decided(const Statement& s, const Evaluation& how) {
    out_.open(str("if (", text_.scalars.name(s.value), " < 43.0f)"));
    write(s.body, how.as(Evaluation::Form::Decided));
    out_.close();
    out_.open("else");
    write(s.body, how.as(Evaluation::Form::Slow));
    out_.close();
  }

  void write_shortcut(const Statement& s, const Evaluation& how) {
    if (s.value >= 0) return write_decided(s, how);
    out_.open("");
    out_.line("bool exact = true;");
    write(s.body, how.as(Evaluation::Form::Fast));
    out_.open("if (!exact)");
    write(s.body, how.as(Evaluation::Form::Slow));
    out_.close();
    out_.close();
  }

  CudaText& text_;
  Text& out_;
  const Tile& tile_;
  std::vector<int> awaited_;  // arrays
  const int64_t asked_;       // bytes that the launch gives
  const bool
      is_aligned_;     // threads take neighbours of shared arrays, which nvcc can do at once
  int64_t place_ = 0;  // in them
  const TileUses uses_;
};

}  // namespace

KernelEntry write_cuda_tile(CudaText& text, const Tile& tile, const std::string& function) {
  if (!fits_int(tile.body)) text.integer = "long long";
  KernelEntry entry = text.begin(function, tile.grid * tile.cluster, 32 * tile.warps,
                                 tile.cluster, tile.resident);
  entry.shared = asked_bytes(tile);
  entry.early = is_early(schedule_of(tile.kernel));
  if (entry.early) text.out.line("if (!" + text.calls("tc_has_waited") + "()) return;");
  if (text.lets_next) text.out.line(text.calls("tc_let_next") + "();");
  TileWriter(text, tile).write();
  text.out.close();
  return entry;
}

}  // namespace tiny_compile

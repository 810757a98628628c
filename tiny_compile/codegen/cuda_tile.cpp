// How does a tile program read in CUDA C? As it stands, a line for a statement; an element that is used once, and
// that nothing has changed until then, is read where it is used:
//
//   $7 = sum2[p]; $8 = sum2[p + 8]; $9 = add($7, $8); sum2[p] = $9
//   =>  sum2[p] = sum2[p] + sum2[p + 8];
#include "tiny_compile/codegen/cuda_tile.h"

#include <algorithm>

#include "tiny_compile/codegen/cuda_arrays.h"
#include "tiny_compile/codegen/cuda_guard.h"
#include "tiny_compile/codegen/cuda_memory_helpers.h"
#include "tiny_compile/codegen/cuda_scalar.h"
#include "tiny_compile/codegen/updates.h"
#include "tiny_compile/loops/bounds.h"

namespace tiny_compile {
namespace {

// What is decided first -----------------------------------------------------------------------

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

// Whether a place that data chooses is written at all.
bool chooses_places(const std::vector<Scalar>& scalars) {
  return std::any_of(scalars.begin(), scalars.end(),
                     [](const Scalar& s) { return !s.limits.empty() && !s.operands.empty(); });
}

bool counts_below(const std::vector<Scalar>& scalars) {
  return std::any_of(scalars.begin(), scalars.end(), [](const Scalar& s) {
    return s.kind == ScalarKind::Votes && s.step == 1;
  });
}

CudaTile cuda_tile(CudaText& text, const Tile& tile) {
  return {text,
          text.out,
          tile,
          uses_of(tile),
          places_of_rows(tile.kernel),
          chooses_places(tile.kernel.scalars),
          awaited_in(tile.body),
          asked_bytes(tile)};
}

bool is_element(const CudaTile& t, int id) {
  return t.tile.kernel.scalars[id].kind == ScalarKind::Element;
}

// A shuffle is a statement: what `?:` leaves out must not hold one.
bool is_read_where_used(const CudaTile& t, int id) {
  return is_element(t, id) && t.uses.counts[id] == 1 && t.uses.standing[id] &&
         t.tile.kernel.scalars[id].limits.empty();
}

// Whether the value is written where the statement behind its definition puts it.
bool is_put_at_once(const CudaTile& t, const Body& body, size_t n) {
  const Statement& s = body[n];
  return n + 1 < body.size() && s.kind == StatementKind::Define && s.array < 0 &&
         body[n + 1].kind == StatementKind::Set && body[n + 1].value == s.value &&
         t.uses.counts[s.value] == 1 && !is_element(t, s.value) &&
         !t.text.scalars.is_trivial(s.value);
}

// How the tile's scalars read wherever they do, as long as `t` is there.
void tell_scalars(const CudaTile& t) {
  ScalarWriter& scalars = t.text.scalars;
  scalars.rounds = [rounds = rounds_on_gpu(t.tile, t.uses)](int id) { return rounds[id]; };
  scalars.is_computed = [&t](int id) { return !t.uses.taken[id]; };
  scalars.in_range = [&t](int chosen, const Expr& limit) {
    return is_in_range(t, chosen, limit);
  };
  scalars.element = [&t](int id) {
    return is_read_where_used(t, id) ? read_element(t, t.tile.kernel.scalars[id])
                                     : std::string();
  };
}

// Where a thread stands, as far as statements count with it.
void declare_place(const CudaTile& t) {
  const std::vector<Scalar>& scalars = t.tile.kernel.scalars;
  const auto names = [&](const char* integer) {
    return name_it(t.tile.body, scalars, integer);
  };
  if (names("thread")) t.out.line("const int thread = threadIdx.x;");
  if (names("warp") || names("lane") || !names("thread") || counts_below(scalars)) {
    t.out.line("const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;");
    if (t.tile.warps > 1)  // which answers most questions whether a register has an element
      t.out.line(str("__builtin_assume(warp < ", t.tile.warps, ");"));
  }
  const int cluster = t.tile.cluster;
  const std::string of_cluster = cluster == 1 ? "" : str(" / ", cluster);
  if (names("block"))
    t.out.line(str("const ", t.text.integer, " block = blockIdx.x", of_cluster, ";"));
  if (cluster > 1) t.out.line(str("const int rank = blockIdx.x % ", cluster, ";"));
}

// Values --------------------------------------------------------------------------------------

std::string evaluated(const CudaTile& t, int id, const Evaluation& how) {
  const Scalar& scalar = t.tile.kernel.scalars[id];
  if (scalar.kind != ScalarKind::Votes) return cuda_value(t.text, id, how);
  const std::string votes =
      str("__ballot_sync(0xffffffffu, ", t.text.scalars.name(scalar.operands[0]), ")");
  return str("__popc(", votes, scalar.step == 1 ? " & ((1u << lane) - 1u))" : ")");
}

void write_definition(const CudaTile& t, const Statement& s, const Evaluation& how) {
  const Scalar& scalar = t.tile.kernel.scalars[s.value];
  if (s.array < 0 && is_read_where_used(t, s.value)) return;
  const std::string value = s.array >= 0             ? read_array(t, s.array, s.index)
                            : is_element(t, s.value) ? read_element(t, scalar)
                                                     : evaluated(t, s.value, how);
  t.out.line(str("const ", value_type(scalar.dtype), " ", t.text.scalars.name(s.value), " = ",
                 value, ";"));
  write_questions(t, s.value);
}

void write_set(const CudaTile& t, const Statement& s, const std::string& value) {
  const Array& a = t.tile.arrays[s.array];
  const std::string stored = a.packed ? exact_storage(t.text.calls, a.dtype, value) : value;
  t.out.line(is_kept(a)
                 ? str(a.name, ".keep(", t.text.scalars.index(s.index), ", ", stored, ");")
                 : str(array_element(t, s.array, s.index), " = ", stored, ";"));
}

// What it takes to divide by it is computed once.
Evaluation behind_divisor(const CudaTile& t, const Statement& s, Evaluation how) {
  if (std::count(how.divisors.begin(), how.divisors.end(), s.value) > 0) return how;
  declare_divisor(t.text, s.value);
  how.divisors.push_back(s.value);
  return how;
}

// Memory --------------------------------------------------------------------------------------

std::string address(const CudaTile& t, int buffer, const Expr& index,
                    const std::vector<int>& chosen = {}) {
  return str(pointer_name(t.text.program.buffers[buffer]), " + ",
             t.text.scalars.index(index, chosen));
}

// "if (fits_0_50257) " where data chooses the places that are read.
std::string where_in_range(const CudaTile& t, const Scalar& load) {
  std::vector<std::string> all;
  for (size_t k = 0; k < load.operands.size(); k++)
    all.push_back(is_in_range(t, load.operands[k], load.limits[k]));
  return str("if (", join(all, " && "), ") ");
}

// Of a vector that may end beyond the last element.
std::string helper(const Statement& s, const std::string& whole) {
  return s.left.is_constant(0) ? whole : whole + "_left";
}

std::string left(const CudaTile& t, const Statement& s) {
  return s.left.is_constant(0) ? "" : ", " + t.text.scalars.index(s.left);
}

void write_load(const CudaTile& t, const Statement& s) {
  const Array& array = t.tile.arrays[s.array];
  const Scalar chosen = s.value < 0 ? Scalar{} : t.tile.kernel.scalars[s.value];
  const std::string from = address(t, s.buffer, s.index, chosen.operands),
                    where = s.value < 0 ? "" : where_in_range(t, chosen);
  if (is_kept(array))
    return t.out.line(str(where, array.name, ".read<", s.width, ">(",
                          t.text.scalars.index(s.place), ", ", from, ");"));
  const bool half = is_half(t.text.program.buffers[s.buffer].type.dtype);
  if (half) t.text.calls(kElementOfPack);
  t.out.line(str(where, t.text.calls(helper(s, half ? "tc_read_halves" : "tc_read")), "<",
                 s.width, ">(&", array_element(t, s.array, s.place), ", ", from, left(t, s),
                 ");"));
}

void write_store_all(const CudaTile& t, const Statement& s) {
  const bool half = is_half(t.text.program.buffers[s.buffer].type.dtype);
  t.out.line(str(t.text.calls(helper(s, half ? "tc_write_halves" : "tc_write")), "<", s.width,
                 ">(", address(t, s.buffer, s.index), ", &", array_element(t, s.array, s.place),
                 left(t, s), ");"));
}

void write_store(const CudaTile& t, const Statement& s) {
  const Buffer& buffer = t.text.program.buffers[s.buffer];
  t.out.line(str(pointer_name(buffer), "[", t.text.scalars.index(s.index), "] = ",
                 exact_storage(t.text.calls, buffer.type.dtype, t.text.scalars.name(s.value)),
                 ";"));
}

// Statements ----------------------------------------------------------------------------------

void write(const CudaTile& t, const Body& body, Evaluation how);

std::string condition(const CudaTile& t, const Statement& s) {
  if (s.value >= 0) return t.text.scalars.name(s.value);
  return str(t.text.scalars.index(s.index), " < ", t.text.scalars.index(s.place));
}

void write_for(const CudaTile& t, const Statement& s, const Evaluation& how) {
  if (s.unrolled || (!t.tile.alone && is_even(s)))  // else it is the compiler's to say
    t.out.line(s.unrolled ? "#pragma unroll" : "#pragma unroll 1");
  t.out.open(str("for (", s.unrolled ? "int" : t.text.integer, " ", s.name, " = ",
                 t.text.scalars.index(s.from), "; ", s.name, " < ",
                 t.text.scalars.index(s.index), "; ", s.name, "++)"));
  write(t, s.body, how);
  t.out.close();
}

// Either way, by what is known of all exponents.
void write_decided(const CudaTile& t, const Statement& s, const Evaluation& how) {
  t.out.open(str("if (", t.text.scalars.name(s.value), " < 43.0f)"));
  write(t, s.body, how.as(Evaluation::Form::Decided));
  t.out.close();
  t.out.open("else");
  write(t, s.body, how.as(Evaluation::Form::Slow));
  t.out.close();
}

void write_shortcut(const CudaTile& t, const Statement& s, const Evaluation& how) {
  if (s.value >= 0) return write_decided(t, s, how);
  t.out.open("");
  t.out.line("bool exact = true;");
  write(t, s.body, how.as(Evaluation::Form::Fast));
  t.out.open("if (!exact)");
  write(t, s.body, how.as(Evaluation::Form::Slow));
  t.out.close();
  t.out.close();
}

void write(const CudaTile& t, const Statement& s, const Evaluation& how) {
  switch (s.kind) {
    case StatementKind::Let:
      return t.text.declare(s.name, s.value < 0 ? t.text.scalars.index(s.index)
                                                : t.text.scalars.nearest(s.value, s.place));
    case StatementKind::Define: return write_definition(t, s, how);
    case StatementKind::Set: return write_set(t, s, t.text.scalars.name(s.value));
    case StatementKind::Load: return write_load(t, s);
    case StatementKind::Store: return write_store(t, s);
    case StatementKind::StoreAll: return write_store_all(t, s);
    case StatementKind::Prefetch:
      return t.out.line(str(t.text.calls("tc_ahead"), "(", address(t, s.buffer, s.index), ", ",
                            s.width, ");"));
    case StatementKind::For: return write_for(t, s, how);
    case StatementKind::If:
      t.out.open(str("if (", condition(t, s), ")"));
      write(t, s.body, how);
      return t.out.close();
    case StatementKind::Else:
      t.out.open("else");
      write(t, s.body, how);
      return t.out.close();
    case StatementKind::Shortcut: return write_shortcut(t, s, how);
    case StatementKind::Barrier: return t.out.line("__syncthreads();");
    case StatementKind::ClusterBarrier:
      return t.out.line(t.text.calls("tc_cluster_barrier") + "();");
    case StatementKind::ClusterStart: return t.out.line("tc_blocks_are_there();");
    case StatementKind::Send: return write_send(t, s);
    case StatementKind::Await: return write_await(t, s);
    case StatementKind::Update: return write_update(t.text, t.tile, s);
    case StatementKind::Divisor: CHECK(false, "its body writes it");
    case StatementKind::UpdateAll:
    case StatementKind::Stream:
    case StatementKind::Tree: CHECK(false, "a CPU's");
  }
}

// What a divisor takes is known to the statements behind it.
void write(const CudaTile& t, const Body& body, Evaluation how) {
  for (size_t n = 0; n < body.size(); n++) {
    const Statement& s = body[n];
    if (s.kind == StatementKind::Divisor)
      how = behind_divisor(t, s, how);
    else if (is_put_at_once(t, body, n))
      write_set(t, body[++n], evaluated(t, s.value, how));
    else
      write(t, s, how);
  }
}

void write_tile(const CudaTile& t) {
  declare_place(t);
  declare_arrays(t);
  if (t.notes_wrong) t.out.line("tc_wrong wrong = {0, -1};");
  write(t, t.tile.body, Evaluation());
  if (t.notes_wrong) t.out.line("tc_tell(wrong);");
}

}  // namespace

KernelEntry write_cuda_tile(CudaText& text, const Tile& tile, const std::string& function) {
  if (!fits_int(tile.body)) text.integer = "long long";
  const CudaTile t = cuda_tile(text, tile);
  tell_scalars(t);
  KernelEntry entry = text.begin(function, tile.grid * tile.cluster, 32 * tile.warps,
                                 tile.cluster, tile.resident);
  entry.shared = t.asked;
  entry.early = is_early(schedule_of(tile.kernel));
  if (entry.early) text.out.line("if (!" + text.calls("tc_has_waited") + "()) return;");
  if (text.lets_next) text.out.line(text.calls("tc_let_next") + "();");
  write_tile(t);
  text.out.close();
  return entry;
}

}  // namespace tiny_compile

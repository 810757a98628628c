// How do a scan's elements come to the threads that have a group of 16 neighbours each? Where rows
// lie contiguous in memory, through shared memory: there and back, neighbouring threads move
// neighbouring packs, whatever address a row begins at.
//
//   p = (k*256 + threadIdx.x)*4, x = p % 4096, y = p / 4096       the thread's pack k of the tile
//   *(tc_pack<float, 4>*)&tile[(y*256 + x/16)*20 + x%16] = ..     16 elements and 4 of padding
//   values[0..15] = tile[(r*256 + g)*20 + 0..15]                  group g of row r
//
// A group and its padding are an odd number of 16-byte words, so that threads that read 16 bytes
// each, of one group each, use different banks. Where columns lie side by side, a thread reads its
// group itself: lanes are columns.
#include "tiny_compile/codegen/cuda_scan_elements.h"

#include <algorithm>

#include "tiny_compile/loops/bounds.h"

namespace tiny_compile {
namespace {

// The steps that go along the row, without what stands before it and what keeps results from memory.
std::vector<Step> steps_along(const Kernel& kernel) {
  std::vector<Step> steps;
  for (const Step& step : kernel.steps) {
    if (step.inner.empty()) continue;
    steps.push_back(step);
    steps.back().other = steps.back().mask = -1;
  }
  return steps;
}

std::vector<const Step*> pointers(const std::vector<Step>& steps) {
  std::vector<const Step*> result;
  for (const Step& step : steps) result.push_back(&step);
  return result;
}

// Whether neighbours along the loop lie side by side, the last one first, where packs may begin.
bool is_reversed(const CudaText& text, const Scalar& load, const Axis& axis, int vector) {
  if (vector == 1 || !is_plain(load) || text.program.buffers[load.buffer].align < 16)
    return false;
  const Expr mirrored = Expr(vector - 1) - axis.symbol();
  return is_contiguous(substitute(load.index, {{axis.name, mirrored}}), axis.symbol(), vector);
}

// Elements that a thread moves at once: as many as suit the results too, if all loads are packs then.
int vector_of(CudaText& text, const ScanShape& shape, std::vector<Step> steps) {
  if (!shape.along || shape.turned()) return 1;
  const int loop = scan_of(text.kernel).inner[0];
  const Axis& axis = text.kernel.axes[loop];
  const int vector = text.widest(pointers(steps), loop, shape.length);
  for (Step& step : steps) {
    if (!makes_register(step)) step.kind = StepKind::Store;
  }
  const int wider = text.widest(pointers(steps), loop, shape.length);
  text.set_vector(loop, wider);
  const std::vector<int> ids = text.needed(pointers(steps));
  const auto suits = [&](int id) {
    const Scalar& scalar = text.kernel.scalars[id];
    return scalar.kind != ScalarKind::Load || !depends_on(scalar.index, axis.name) ||
           text.is_wide(scalar.index, scalar.buffer) || is_reversed(text, scalar, axis, wider);
  };
  return std::all_of(ids.begin(), ids.end(), suits) ? wider : vector;
}

int64_t points_of(const ScanShape& shape, int vector) {
  if (!shape.along) return kGroup;
  return ceil_divide(shape.block_rows * shape.columns(), shape.threads() * vector);
}

}  // namespace

ScanElements::ScanElements(CudaText& text, const ScanShape& shape)
    : text_(text),
      out_(text.out),
      kernel_(text.kernel),
      scan_(scan_of(kernel_)),
      axis_(kernel_.axes[scan_.inner[0]]),
      shape_(shape),
      words_(kernel_, scan_, text.integer),
      type_(value_type(compute_type(kernel_.scalars[scan_.value].dtype))),
      along_(steps_along(kernel_)),
      ids_(text.needed(pointers(along_))),
      vector_(vector_of(text, shape, along_)),
      points_(points_of(shape, vector_)),
      defined_(kernel_.scalars.size()) {
  for (const Step& step : kernel_.steps) {
    if (step.kind == StepKind::Store) (step.inner.empty() ? of_row_ : stores_).push_back(&step);
  }
  text_.set_vector(scan_.inner[0], vector_);
  choose_early();
}

// Loads that are under way while the tile before them is scanned, in as many registers as the
// group at hand has; the others are waited for. So are rows that begin anywhere: sixteen loads,
// each with an end of its own, took more time than they saved. (cumsum of f32[792,50257]: .2098
// ms, so .1284.)
void ScanElements::choose_early() {
  if (shape_.along && !shape_.turned() && vector_ == 1) return;
  int64_t left = kGroup * std::max<int64_t>(size_of_value(), 4);  // registers are counted in 4
  for (int id : ids_) {
    const Scalar& load = kernel_.scalars[id];
    const int64_t bytes = points_ * vector_ * size_of(load.dtype);
    if (!is_plain(load) || !depends_on(load.index, axis_.name) || bytes > left) continue;
    early_.push_back(id);
    left -= bytes;
  }
  const auto otherwise = text_.scalars.element;
  text_.scalars.element = [this, otherwise](int id) {
    return is_early(id) ? early_element(id) : otherwise(id);
  };
}

std::string ScanElements::early_element(int id) const {
  const Scalar& load = kernel_.scalars[id];
  const std::string early = str("early_", id, "[k]");
  if (vector_ == 1) return early;
  const std::string element = text_.element_of_pack(early, load.dtype);
  if (!is_reversed(text_, load, axis_, vector_)) return element;
  return is_half(load.dtype) ? str(early, ", ", vector_ - 1, " - v")
                             : str(early, ".at[", vector_ - 1, " - v]");
}

bool ScanElements::is_early(int id) const {
  return std::count(early_.begin(), early_.end(), id) > 0;
}

std::string ScanElements::pack_type(const std::string& type) const {
  return vector_ == 1 ? type : str(text_.calls("tc_pack"), "<", type, ", ", vector_, ">");
}

// Of a place in shared memory, which may hold a value or a result.
int64_t ScanElements::slot() const { return std::max(size_of_value(), size_of_result(scan_)); }

int64_t ScanElements::size_of_value() const {
  return size_of(compute_type(kernel_.scalars[scan_.value].dtype));
}

int64_t ScanElements::size_of_result(const Step& scan) const {
  if (!gives_places(scan)) return size_of_value();
  return text_.integer == "int" ? 4 : 8;
}

int64_t ScanElements::pitch(int64_t size) const { return (slot() | 1) * 16 / size; }

// Threads that go from row to row would meet in a bank.
int64_t ScanElements::row_padding() const { return shape_.turned() ? 16 : 0; }

int64_t ScanElements::shared_bytes() const {
  return shape_.along ? shape_.threads() * pitch(1) + shape_.block_rows * row_padding() : 0;
}

bool ScanElements::moves_in_two_ways() const {
  return shape_.turned() || size_of_value() != size_of_result(scan_);
}

void ScanElements::declare() {
  if (shape_.along) out_.line(str(text_.calls("TC_SHARED"), "(shared, ", shared_bytes(), ");"));
  for (int id : early_)
    out_.line(
        str(pack_type(c_type(kernel_.scalars[id].dtype)), " early_", id, "[", points_, "];"));
  text_.define(ids_, {0, true}, defined_);
  const std::string by = str(shape_.along ? shape_.groups : shape_.block_rows);
  out_.line(str("const int r = (int)threadIdx.x ", shape_.along ? "/ " : "% ", by,
                ", g = (int)threadIdx.x ", shape_.along ? "% " : "/ ", by, ";"));
  if (shape_.along) return;
  declare_row();
  text_.define(ids_, {row_mask(kernel_), true}, defined_);
}

// The thread's row; of those beyond the last one, that one, for which they store nothing.
void ScanElements::declare_row() {
  const std::string row = str("(", text_.integer, ")blockIdx.x * ", shape_.block_rows, " + r");
  if (is_whole()) {
    text_.declare("row", row);
  } else {
    out_.line(str("const bool is_row = ", row, " < ", shape_.rows, ";"));
    text_.declare("row", str("is_row ? ", row, " : ", shape_.rows - 1));
  }
  text_.unpack_rows("row");
}

bool ScanElements::is_whole() const { return shape_.rows % shape_.block_rows == 0; }

std::string ScanElements::first_of_group(const std::string& tile) const {
  return str(shape_.tiles() == 1 ? "g" : str("(", tile, " * ", shape_.groups, " + g)"), " * ",
             kGroup);
}

void ScanElements::ask(const std::string& tile) {
  if (early_.empty()) return;
  open_points(tile, shape_.loads_turned);
  std::vector<int> single;
  for (int id : early_) {
    const Scalar& load = kernel_.scalars[id];
    const bool reversed = is_reversed(text_, load, axis_, vector_);
    if (!reversed && !text_.is_wide(load.index, load.buffer)) {
      single.push_back(id);
      continue;
    }
    const Expr e = Expr::index(tile_symbol("e"), axis_.extent);
    const Expr start = substitute(load.index, {{axis_.name, reversed ? e + (vector_ - 1) : e}});
    out_.line(str("early_", id, "[k] = *(const ", pack_type(c_type(load.dtype)), "*)&",
                  pointer_name(text_.program.buffers[load.buffer]), "[",
                  text_.scalars.index(start), "];"));
  }
  if (!single.empty()) open_elements();
  for (int id : single) {
    const Scalar& load = kernel_.scalars[id];
    out_.line(str("early_", id, "[k]", lane(), " = ",
                  pointer_name(text_.program.buffers[load.buffer]), "[",
                  text_.scalars.index(load.index), "];"));
  }
  if (!single.empty()) close_elements();
  close_points();
}

void ScanElements::put(const std::string& tile) {
  if (!shape_.along) declare_values();
  open_points(tile, shape_.loads_turned);
  std::vector<int> late;
  std::copy_if(ids_.begin(), ids_.end(), std::back_inserter(late),
               [&](int id) { return !is_early(id); });
  std::vector<bool> defined = defined_;
  text_.load_packs(late, defined);
  text_.define(ids_, {row_mask(kernel_), true}, defined);
  const bool packs = shape_.along && vector_ > 1;
  if (packs) out_.line(str(pack_type(type_), " pack;"));
  text_.declare_store_packs(stores_);
  open_elements();
  text_.define(ids_, element_scope(kernel_, scan_.inner), defined);
  const std::string there = shape_.along ? in_tile(type_, size_of_value()) : "values[k]";
  out_.line(str(packs ? "pack.at[v]" : there, " = ", text_.scalars.name(scan_.value), ";"));
  for (const Step* store : stores_) text_.write_store(*store);
  close_elements();
  if (packs) out_.line(str(there, " = pack;"));
  text_.store_packs(stores_);
  close_points();
}

// Of a column's group; what is not of the column changes nothing.
void ScanElements::declare_values() {
  out_.line(str(type_, " values[", kGroup, "];"));
  if (is_whole() && !shape_.is_ragged()) return;
  out_.line("#pragma unroll");
  out_.line(str("for (int k = 0; k < ", kGroup, "; k++) values[k] = ",
                gives_places(scan_) ? "0" : words_.op + "::identity()", ";"));
}

void ScanElements::take() {
  if (shape_.along) {
    out_.line(str(type_, " values[", kGroup, "];"));
    open_group(type_, size_of_value());
    out_.line("const auto pack = group[k];");
    out_.line("#pragma unroll");
    const int64_t count = 16 / size_of_value();
    out_.line(
        str("for (int v = 0; v < ", count, "; v++) values[k * ", count, " + v] = pack.at[v];"));
    out_.close();
    out_.close();
  }
  if (gives_places(scan_)) out_.line(str(text_.integer, " places[", kGroup, "];"));
}

void ScanElements::give(const Step& scan) {
  if (!shape_.along) return;
  const int64_t size = size_of_result(scan), count = 16 / size;
  open_group(result_type(scan), size);
  out_.line("auto pack = group[k];");
  out_.line("#pragma unroll");
  out_.line(str("for (int v = 0; v < ", count, "; v++) pack.at[v] = ",
                gives_places(scan) ? "places" : "values", "[k * ", count, " + v];"));
  out_.line("group[k] = pack;");
  out_.close();
  out_.close();
}

// For each 16 bytes of the thread's group in shared memory.
void ScanElements::open_group(const std::string& type, int64_t size) {
  const std::string pack = str(text_.calls("tc_pack"), "<", type, ", ", 16 / size, ">");
  out_.open("");
  out_.line(str(pack, "* const group = (", pack, "*)(shared + threadIdx.x * ", pitch(1),
                row_padding() == 0 ? "" : str(" + r * ", row_padding()), ");"));
  out_.line("#pragma unroll");
  out_.open(str("for (int k = 0; k < ", size, "; k++)"));
}

// The results of a tile go to memory.
void ScanElements::home(const std::string& tile, const Step& scan) {
  open_points(tile, shape_.stores_turned);
  if (shape_.along && scan.mask < 0 && text_.is_wide(scan.index, scan.buffer)) {
    home_pack(scan);
  } else {
    const std::string type = result_type(scan);
    if (shape_.along)
      out_.line(str("const ", pack_type(type),
                    " results = ", in_tile(type, size_of_result(scan)), ";"));
    open_elements();
    const std::string here = gives_places(scan) ? "places[k]" : "values[k]";
    out_.line(str(mask_of_element(), text_.place(scan), " = ",
                  to_storage(text_.calls, scan.dtype, shape_.along ? "results" + lane() : here),
                  ";"));
    close_elements();
  }
  close_points();
}

void ScanElements::home_pack(const Step& scan) {
  const std::string pack = "pack_" + pointer_name(text_.program.buffers[scan.buffer]);
  const std::string from = in_tile(result_type(scan), size_of_result(scan));
  if (!gives_places(scan)) {
    out_.line(str("const ", pack_type(type_), " ", pack, " = ", from, ";"));
  } else {
    out_.line(str("const ", pack_type(result_type(scan)), " results = ", from, ";"));
    out_.line(str(pack_type(value_type(scan.dtype)), " ", pack, ";"));
    out_.line("#pragma unroll");
    out_.line(str("for (int v = 0; v < ", vector_, "; v++) ", pack, ".at[v] = results.at[v];"));
  }
  text_.store_packs({&scan});
}

std::string ScanElements::mask_of_element() {
  if (scan_.mask < 0) return "";
  Step only = scan_;
  only.value = only.other = -1;
  std::vector<bool> here = defined_;
  text_.define(text_.needed({&only}), element_scope(kernel_, scan_.inner), here);
  return str("if (", text_.scalars.name(scan_.mask), ") ");
}

std::string ScanElements::in_tile(const std::string& type, int64_t size) const {
  const std::string group = shape_.block_rows == 1
                                ? str("x / ", kGroup)
                                : str("(y * ", shape_.groups, " + x / ", kGroup, ")");
  const std::string place = str("((", type, "*)shared)[", group, " * ", pitch(size),
                                row_padding() == 0 ? "" : str(" + y * ", row_padding() / size),
                                " + x % ", kGroup, "]");
  return vector_ == 1 ? place : str("*(", pack_type(type), "*)&", place);
}

// For each of the thread's packs of a tile: where it is, and if it is in range.
void ScanElements::open_points(const std::string& tile, bool turned) {
  out_.line("#pragma unroll");
  out_.open(str("for (int k = 0; k < ", points_, "; k++)"));
  std::vector<std::string> within =
      shape_.along ? place_in_memory(tile, turned) : place_in_group(tile);
  if (shape_.is_ragged() && (shape_.tiles() > 1 || !shape_.along))
    within.push_back(str("e < ", shape_.length));
  is_guarded_ = !within.empty();
  if (is_guarded_) out_.open(str("if (", join(within, " && "), ")"));
  if (shape_.along) unpack_row();
}

// Of whole blocks of rows most of what names a row is the block's, which the compiler then computes once
// for a thread's sixteen.
void ScanElements::unpack_row() {
  if (!is_whole() || shape_.block_rows == 1) return text_.unpack_rows("row");
  const Expr block = Expr::symbol("block", 0, shape_.rows / shape_.block_rows - 1),
             y = Expr::symbol("y", 0, shape_.block_rows - 1);
  text_.declare("block", str("(", text_.integer, ")blockIdx.x"));
  text_.unpack_rows(kernel_.rows, block * shape_.block_rows + y);
}

// Neighbouring threads have neighbours in memory; the conditions under which they are the rows'.
std::vector<std::string> ScanElements::place_in_memory(const std::string& tile, bool turned) {
  const int64_t step = shape_.threads() * vector_, columns = shape_.columns();
  const std::string own = str("(int)threadIdx.x", vector_ == 1 ? "" : str(" * ", vector_)),
                    p = str("k * ", step, " + ", own);
  const std::string row = str("(", text_.integer, ")blockIdx.x");
  if (shape_.block_rows == 1) {
    out_.line(str("const int x = ", p, ";"));
    text_.declare("row", row);
  } else {
    const int64_t by = turned ? shape_.block_rows : columns;
    const std::string beside = turned ? "y" : "x", across = turned ? "x" : "y";
    out_.line(str("const int p = ", p, ";"));
    if (step % by == 0)  // only the last part changes from one of a thread's to the next
      out_.line(str("const int ", beside, " = ", own, " % ", by, ", ", across, " = k * ",
                    step / by, " + ", own, " / ", by, ";"));
    else
      out_.line(str("const int ", beside, " = p % ", by, ", ", across, " = p / ", by, ";"));
    text_.declare("row", str(row, " * ", shape_.block_rows, " + y"));
  }
  text_.declare("e", shape_.tiles() == 1 ? "x" : str(tile, " * ", columns, " + x"));
  std::vector<std::string> within;
  if (points_ * step != shape_.block_rows * columns)
    within.push_back(
        str(shape_.block_rows == 1 ? "x < " : "p < ", shape_.block_rows * columns));
  if (!is_whole()) within.push_back(str("row < ", shape_.rows));
  return within;
}

std::vector<std::string> ScanElements::place_in_group(const std::string& tile) {
  text_.declare("e", str(first_of_group(tile), " + k"));
  if (is_whole()) return {};
  return {"is_row"};
}

// For each element of a pack; of one element, for that one.
void ScanElements::open_elements() {
  if (vector_ > 1) {
    out_.line("#pragma unroll");
    out_.open(str("for (int v = 0; v < ", vector_, "; v++)"));
  }
  text_.declare(axis_.name, vector_ > 1 ? "e + v" : "e");
}

void ScanElements::close_elements() {
  if (vector_ > 1) out_.close();
}

void ScanElements::close_points() {
  if (is_guarded_) out_.close();
  out_.close();
}

}  // namespace tiny_compile

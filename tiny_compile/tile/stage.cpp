// How do neighbours of one kind become neighbours of another? The threads of a block read a piece as it
// lies in memory, leave it in shared memory, and take from there what is theirs; and the same the other
// way for what is stored:
//
//   via load 1 rows lane 16 · vector 4 loop register 4 · warp 8 · lane 2 padding 1
//   =>
//   for r_k < 4 { line = ..; k = ..; pack[0 ..] = load x[..] x4
//                 for v_line < 4 { staged[(lane%16*4 + v_line)*65 + ..] = $4 } }
//   barrier
//   ... $0 = staged[(warp + ..)*65 + ..] ...
//
// Of several pieces two are there at a time, so that one barrier a piece is enough.
#include "tiny_compile/tile/stage.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/loops/laid_out.h"
#include "tiny_compile/loops/legal_via.h"

namespace tiny_compile {
namespace {

constexpr const char* kRow = "line";  // the name of a row, of those who read or store

// Grid, cluster and turns of one layout, and all else of another.
Layout with_top_of(const Layout& top, const Layout& rest) {
  Layout layout = top;
  std::erase_if(layout, [](const Part& part) { return is_of_block(part.level); });
  layout.insert(layout.end(), rest.begin(), rest.end());
  return layout;
}

// Where a thread's element lies in a block's rows, or in a piece of its loops.
Expr place_in(const Tile& tile, const std::string& name, const Layout& layout) {
  return share_of(tile, name, covered_by(layout), layout, 0).at();
}

Expr place_in_piece(const Tile& tile, const Layout& loop, int pieces) {
  const Layout piece = of_piece(loop, pieces);
  const Expr place = place_in(tile, "k", piece);
  const int64_t registers = extent_of(piece, Level::Register);
  if (pieces == 1 || registers == 1) return place;
  return substitute(place,
                    {{Expr::index("r_k", registers).symbol(), Expr::index("g_k", registers)}});
}

// Of row and element, each counted in the piece.
Expr place_in_stage(const Via& via, const Expr& row, const Expr& element) {
  const int64_t rows = covered_by(via.rows), loops = covered_by(via.loop) / via.pieces;
  const Expr place = goes_along_rows(via) ? row * (loops + via.padding) + element
                                          : element * (rows + via.padding) + row;
  if (via.pieces == 1) return place;
  return mod(Expr::index("s_k", via.pieces), 2) * (elements_of_stage(via) / 2) + place;
}

// What is put into shared memory from an array is no load there, but an element of that.
void name_elements(Tile& tile, int load, Body& body) {
  int element = -1;
  for (Statement& s : body) {
    name_elements(tile, load, s.body);
    if (s.kind == StatementKind::Define && s.value == load && s.array >= 0)
      s = define(element = add_element(tile, s.array, s.index));
    else if (s.kind == StatementKind::Set && s.value == load && element >= 0)
      s.value = element;
  }
}

// One access, by the threads that read or store it as it lies in memory. They name axes by names of
// their own.
class Staging {
 public:
  Staging(Lowering& l, const Via& via)
      : l_(l), via_(via), loop_(layout_over(l.kernel, l.inner)) {}

  // Where the pass at hand takes it from, or gives it to.
  StagedElement staged(int array) const {
    const Layout& rows = l_.kernel.schedule->rows;
    return {array, place_in_stage(via_, place_in(l_.tile, l_.rows.name, of_block(rows)),
                                  place_in_piece(l_.tile, loop_, via_.pieces))};
  }

  Work load(int array) {
    const int id = copy_of(loaded_by(l_.kernel, via_));
    return run([&](Lowering& own, const Share& k) {
      const Body each = {set(array, place(), id)};
      const std::vector<int> ids = evaluated_for(own.kernel, {id}, [](int) { return false; });
      Body body = own.rows.registers == 1 ? row_begins(own) : Body{};
      append(body, over_elements(own, ids, own.inner, k, each, {}, false));
      Layout all =
          k.layout;  // each block has its own shared memory, whoever else has the element
      if (extent_of(all, Level::Cluster) < own.tile.cluster)
        all.push_back({Level::Cluster, own.tile.cluster});
      for (const Expr& bits : unused_bits(own.tile, {via_.rows, all}))
        body = {if_less(bits, 1, std::move(body))};
      name_elements(own.tile, id, body);
      return body;
    });
  }

  Work store(int array) {
    const int number = stored_by(l_.kernel, via_);
    const int id = add_element(l_.tile, array, place());
    return run(
        [&](Lowering& own, const Share& k) {
          Body after, each = {define(id)};
          append(each, store_elements(own, {number}, k, after));
          Body body = own.rows.registers == 1 ? row_begins(own) : Body{};
          append(body, by_owner(own, {via_.rows, k.layout},
                                over_elements(own, {}, own.inner, k, each, after, true)));
          return body;
        },
        number, id);
  }

 private:
  static std::string own_name(const Axis& axis) { return axis.name + "_via"; }

  std::vector<int> own_axes() const {
    std::vector<int> axes = axes_laid_out(l_.kernel);
    axes.insert(axes.end(), l_.inner.begin(), l_.inner.end());
    return axes;
  }

  Substitution own_names() const {
    Substitution names;
    for (int a : own_axes()) {
      const Axis& axis = l_.kernel.axes[a];
      names.push_back({axis.name, Expr::index(own_name(axis), axis.extent)});
    }
    return names;
  }

  // The scalar and what it is made of, over those axes.
  int copy_of(int id) {
    Scalar s = l_.tile.kernel.scalars[id];
    if (s.kind == ScalarKind::Constant) return id;
    s.index = substitute(s.index, own_names());
    for (int& operand : s.operands) operand = copy_of(operand);
    if (s.mask >= 0) s.mask = copy_of(s.mask);
    l_.tile.kernel.scalars.push_back(std::move(s));
    return static_cast<int>(l_.tile.kernel.scalars.size()) - 1;
  }

  Expr place() const {
    return place_in_stage(via_, place_in(l_.tile, kRow, via_.rows),
                          place_in_piece(l_.tile, via_.loop, via_.pieces));
  }

  template <typename Write>
  Work run(const Write& write, int step = -1, int value = -1) {
    Kernel kernel = l_.tile.kernel;
    if (step >= 0) {
      kernel.steps[step].value = value;
      kernel.steps[step].index = substitute(kernel.steps[step].index, own_names());
    }
    for (int axis : own_axes()) kernel.axes[axis].name = own_name(kernel.axes[axis]);
    Lowering own{l_.program, kernel, axes_of_scalars(kernel)};
    own.tile = std::move(l_.tile);
    own.inner = l_.inner;
    own.clamps = clamps_elements(loop_);
    own.defined.assign(kernel.scalars.size(), false);
    own.rows = share_of_rows(own, kRow, with_top_of(kernel.schedule->rows, via_.rows));
    const Share k = share_over(own, own.inner, with_top_of(loop_, via_.loop));
    Work work{write(own, k)};
    work.share = k;
    l_.tile = std::move(own.tile);
    return work;
  }

  Lowering& l_;
  const Via& via_;
  const Layout loop_;
};

// The array that it goes by; where an earlier pass used it, or an earlier turn, all wait before.
int array_of(Lowering& l, size_t number, Body& before) {
  const Via& via = l.kernel.schedule->via[number];
  const bool repeats = extent_of(layout_over(l.kernel, l.inner), Level::Serial) > 1;
  const auto found = l.stages.find(number);
  if ((found != l.stages.end() || repeats) && before.empty()) before = {barrier()};
  if (found != l.stages.end()) return found->second;
  const DType dtype = dtype_of(l.kernel, via);
  return l.stages[number] =
             add_array(l.tile, {str("staged", l.tile.arrays.size()), dtype,
                                elements_of_stage(via), Space::Shared, is_half(dtype)});
}

// Where the pass finds what one access has read, or leaves what another is to store.
StagedElement add_stage(Lowering& l, size_t number, Stages& stages) {
  const Via& via = l.kernel.schedule->via[number];
  const int array = array_of(l, number, stages.before);
  Staging staging(l, via);
  stages.works.push_back(via.stores ? staging.store(array) : staging.load(array));
  stages.pieces = via.pieces;
  return staging.staged(array);
}

}  // namespace

bool clamps_elements(const Layout& loop) {
  return !loop.empty() && loop[0].level == Level::Grid;
}

Stages stage_loads(Lowering& l, const std::vector<int>& ids) {
  Stages stages;
  const std::vector<Via>& all = l.kernel.schedule->via;
  for (size_t n = 0; n < all.size(); n++) {
    const int load = loaded_by(l.kernel, all[n]);
    if (std::count(ids.begin(), ids.end(), load) > 0 && !is_known(l, load) &&
        loops_of(l.kernel, all[n]) == l.inner)
      l.staged[load] = add_stage(l, n, stages);
  }
  if (!stages.empty()) stages.works.back().after = {barrier()};
  return stages;
}

Stages stage_stores(Lowering& l, const std::vector<int>& steps) {
  Stages stages;
  const std::vector<Via>& all = l.kernel.schedule->via;
  for (size_t n = 0; n < all.size(); n++) {
    const int step = stored_by(l.kernel, all[n]);
    if (std::count(steps.begin(), steps.end(), step) > 0)
      l.stored[step] = add_stage(l, n, stages);
  }
  return stages;
}

}  // namespace tiny_compile

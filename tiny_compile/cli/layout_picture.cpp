// How does one see a layout? As a table of the block's elements, each with the thread that has it:
//
//            0    1    2    3           4 rows of 4 elements: rows grid · warp 4
//     0   [0 0][1 0][0 1][1 1]          loop register 2 · lane 2
//     1   [0 0][1 0][0 1][1 1]          "1 0" is lane 1, register 0; a row here is a warp, and has
//     ...                               a colour of its own
//
// Where lanes are neighbouring rows, rows go across, as they do in memory. A tile that is larger
// than a page is shown in part, and the picture says which part.
#include "tiny_compile/cli/layout_picture.h"

#include <algorithm>

#include "tiny_compile/base/error.h"
#include "tiny_compile/cli/drawing.h"
#include "tiny_compile/cli/layout.h"
#include "tiny_compile/cli/svg.h"
#include "tiny_compile/loops/sweeps.h"
#include "tiny_compile/tile/facts.h"
#include "tiny_compile/tile/owner.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostAcross = 32, kMostDown = 16;  // cells
constexpr double kMargin = 16, kNumbers = 44, kCellHeight = 18, kBitWidth = 230;

// An index of the tile: the block's rows, or a loop.
struct Side {
  std::string name;     // "rows"
  int64_t count = 1;    // elements that there are
  int64_t covered = 1;  // and that the layout of one block has room for
  int64_t shown(int64_t most) const { return std::min(covered, most); }
};

// Of one loop, or of the rows alone.
struct Grid {
  Layout rows, loop;
  Side row, element;
  bool rows_across = false;

  const Side& across() const { return rows_across ? row : element; }
  const Side& down() const { return rows_across ? element : row; }
  bool exists(int64_t x, int64_t y) const { return x < across().count && y < down().count; }
  Owner owner(int64_t x, int64_t y) const {
    return rows_across ? owner_of(rows, loop, x, y) : owner_of(rows, loop, y, x);
  }
};

bool is_of_neighbours(const Layout& layout) {
  return !layout.empty() && (layout.back().level == Level::Vector ||
                             (layout.back().level == Level::Lane && layout.back().step == 1));
}

Grid grid_of(const ScheduleFacts& facts, const LoopFacts& loop) {
  const BlockFacts& block = *facts.block;
  Grid grid{facts.schedule.rows, loop.layout, {}, {}, false};
  grid.row = {"rows of the block", block.count, block.rows};
  grid.element = {"elements of the row", loop.count, covered_by(loop.layout)};
  grid.rows_across = is_of_neighbours(grid.rows) && !is_of_neighbours(grid.loop);
  return grid;
}

// "the first 32 of 1024 elements of the row", "all 8 rows of the block".
std::string part_of(const Side& side, int64_t most) {
  if (side.shown(most) < side.covered)
    return tiny_compile::str("the first ", most, " of ", side.covered, " ", side.name);
  return tiny_compile::str("all ", side.covered, " ", side.name);
}

// What cells say beside lane and register: the warp where colours are too few, the turn where there
// are some.
struct Told {
  bool warp = false, turn = false;
  double width() const { return 42 + 18 * (warp + turn); }
  std::string what() const {
    return tiny_compile::str(warp ? "warp, " : "", "lane, register", turn ? ", turn" : "");
  }
};

std::string cell_text(const Owner& owner, const Told& told) {
  std::vector<int64_t> numbers = {owner.lane, owner.reg};
  if (told.warp) numbers.insert(numbers.begin(), owner.warp);
  if (told.turn) numbers.push_back(owner.turn);
  return join(numbers, " ");
}

std::string hint_of(const Owner& owner, bool has_turns) {
  const std::string text =
      tiny_compile::str("warp ", owner.warp, ", lane ", owner.lane, ", register ", owner.reg);
  return has_turns ? tiny_compile::str(text, ", turn ", owner.turn) : text;
}

// Who owns a bit, and what it takes to add its halves.
std::string bit_text(const Bit& bit) {
  const std::string text = tiny_compile::str(bit.stride, " apart: ", name_of(bit.level));
  switch (combined_by(bit.level)) {
    case CombinedBy::Shuffle: return tiny_compile::str(text, " ^ ", bit.step, ", a shuffle");
    case CombinedBy::Exchange: return tiny_compile::str(text, " ^ ", bit.step, ", an exchange");
    case CombinedBy::Turns: return text + ", between turns";
    default: return text + ", an add";
  }
}

// The pictures of the kernels, one below the other.
class LayoutPicture {
 public:
  void add(const Program& program, const Kernel& kernel) {
    const ScheduleFacts facts = facts_of(program, kernel);
    text(kernel.name, "title");
    text("schedule " + tiny_compile::str(facts.schedule), "dim small");
    if (facts.block) add_grids(facts);
    for (const std::string& line : lines(facts)) {
      for (const std::string& part : wrapped(line, kMostLine)) text(part, "small");
    }
    y_ += 24;
  }

  std::string str(const std::string& title) const {
    return out_.str(width_ + kMargin, y_, title);
  }

 private:
  static constexpr size_t kMostLine = 130;

  void text(const std::string& line, const std::string& classes) {
    out_.text(kMargin, y_, line, classes);
    widen(kMargin + text_width(line));
    y_ += kLine + 2;
  }

  void widen(double x) { width_ = std::max(width_, x); }

  void add_grids(const ScheduleFacts& facts) {
    const std::vector<LoopFacts>& loops = facts.block->loops;
    for (const LoopFacts& loop : loops) add_grid(facts, loop);
    if (loops.empty()) add_grid(facts, LoopFacts{});
  }

  void add_grid(const ScheduleFacts& facts, const LoopFacts& loop) {
    const Grid grid = grid_of(facts, loop);
    const Told told = {facts.block->warps > kColours,
                       extent_of(loop.layout, Level::Serial) > 1};
    text(tiny_compile::str("Across ", part_of(grid.across(), kMostAcross), ", down ",
                           part_of(grid.down(), kMostDown), "; in a cell ", told.what(),
                           "; its colour is the warp's."),
         "dim small");
    const double top = y_;
    double right = draw_cells(grid, told, facts.block->warps);
    double bottom = y_;
    for (const ReductionFacts& reduction : loop.reductions) {
      y_ = top;
      draw_order(reduction, right + 24);
      right += kBitWidth + 24;
      bottom = std::max(bottom, y_);
    }
    y_ = bottom + 18;
  }

  // Returns where they end.
  double draw_cells(const Grid& grid, const Told& told, int warps) {
    const int64_t across = grid.across().shown(kMostAcross),
                  down = grid.down().shown(kMostDown);
    const double width = told.width(), left = kMargin + kNumbers;
    for (int64_t x = 0; x < across; x++)
      out_.text(left + width * (static_cast<double>(x) + 0.5), y_ + 10, std::to_string(x),
                "dim small", "middle");
    y_ += 16;
    for (int64_t row = 0; row < down; row++, y_ += kCellHeight) {
      out_.text(left - 8, y_ + 13, std::to_string(row), "dim small", "end");
      for (int64_t x = 0; x < across; x++)
        draw_cell(grid, x, row, left + width * static_cast<double>(x), told);
    }
    const double right =
        std::max(left + width * static_cast<double>(across), draw_legend(warps, left));
    widen(right);
    return right;
  }

  // What is covered but is no element is pale, and has no owner.
  void draw_cell(const Grid& grid, int64_t x, int64_t row, double left, const Told& told) {
    const double width = told.width();
    if (!grid.exists(x, row))
      return out_.rectangle(left, y_, width, kCellHeight, "box quiet", 0, "beyond the last");
    const Owner owner = grid.owner(x, row);
    out_.rectangle(left, y_, width, kCellHeight,
                   tiny_compile::str("box g", owner.warp % kColours), 0,
                   hint_of(owner, told.turn));
    out_.text(left + width / 2, y_ + 13, cell_text(owner, told), "small", "middle");
  }

  double draw_legend(int warps, double x) {
    y_ += 8;
    for (int warp = 0; warp < std::min(warps, kColours); warp++, x += 84) {
      out_.rectangle(x, y_, 14, 12, tiny_compile::str("box g", warp));
      out_.text(x + 20, y_ + 10, tiny_compile::str("warp ", warp), "small");
    }
    if (warps > kColours) {
      const std::string rest = tiny_compile::str("and again, of ", warps);
      out_.text(x, y_ + 10, rest, "dim small");
      x += text_width(rest);
    }
    y_ += 20;
    return x;
  }

  // A line for each bit, the first taken first: how far apart its halves lie, and who owns it.
  void draw_order(const ReductionFacts& reduction, double x) {
    const std::string title = join(reduction.names, ", ") + " takes in this order";
    out_.text(x, y_ + 10, title, "small");
    widen(x + std::max(kBitWidth, text_width(title)));
    y_ += 16;
    for (const Bit& bit : reduction.order) {
      out_.rectangle(x, y_, kBitWidth, kCellHeight, "box");
      out_.text(x + 8, y_ + 13, bit_text(bit), "small");
      y_ += kCellHeight;
    }
  }

  Svg out_;
  double y_ = 28, width_ = 0;
};

std::string names_of(const Program& program) {
  std::vector<std::string> names;
  for (const Kernel& kernel : program.kernels) names.push_back(kernel.name);
  return join(names, ", ");
}

}  // namespace

std::string layout_picture(const Program& program, const std::string& kernel) {
  LayoutPicture picture;
  bool found = false, drawn = false;
  for (const Kernel& one : program.kernels) {
    if (!kernel.empty() && one.name != kernel) continue;
    found = true;
    if (!has_facts(one)) continue;
    picture.add(program, one);
    drawn = true;
  }
  if (!kernel.empty() && !found)
    fail("program ", program.name, " has no kernel '", kernel, "', but ",
         program.kernels.empty() ? "none at all" : names_of(program));
  if (!drawn)
    fail("program ", program.name, " has no kernel with a schedule: there is nothing to draw");
  return picture.str(program.name + ": who owns which element");
}

}  // namespace tiny_compile

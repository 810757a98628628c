// What if the threads of a row would read far apart? A block copies its rows into shared memory
// as they lie in memory, and its threads take their rows from there:
//
//   softmax of x.t(), rows of 4096: x runs along the rows. A block takes a strip of 8 rows, so
//   that each 32-byte sector is used whole, 4 rows at a time:
//     tile_0[s*pitch + e] = x[row + s + e*16384]      packs along s
//     wait for each other; for 2 turns: 4 warps a row, as without a tile
//
//   softmax of rows of 7: 16 bytes belong to several rows. A block takes 256 rows, a thread a row:
//     tile_0 = x[256 * 7 * block ...]                 packs along all of it
//     wait; a thread reduces its 7; tile_y[7*line + e] = ..; wait; y = tile_y
//
// A row's place in a tile is odd (or 4 modulo 8) 32-bit words behind the row before it, so that
// threads which read a column, and those that write a pack of one, meet few others in a bank.
#include "tiny_compile/codegen/cuda_staged.h"

#include <algorithm>

#include "tiny_compile/codegen/cuda_turned.h"

namespace tiny_compile {
namespace {

constexpr int64_t kPack = 16, kSector = 32;  // bytes
// Short rows.
constexpr int64_t kShortRow = 32;           // elements; below: a thread a row
constexpr int64_t kManyShort = 1 << 14;     // rows: as many threads keep a GPU busy
constexpr int64_t kLoaded = 24;             // bytes a thread asks for at least, in some rows
constexpr int64_t kMostTurns = 4;           // so many at most
constexpr int64_t kShortShared = 48 << 10;  // bytes
// Strips.
constexpr int64_t kMany = 256;              // rows: so many that strips of them keep it busy
constexpr int64_t kMostWarps = 16;          // of a row
constexpr int64_t kLittle = 20 << 10;       // bytes of a strip: there may be more of it
constexpr int64_t kThreeBlocks = 72 << 10;  // that a multiprocessor holds
constexpr int64_t kTwoBlocks = 110 << 10;
constexpr int64_t kMostShared = 220 << 10;
constexpr int64_t kShared = 227 << 10, kBesides = 1 << 10;  // of all blocks; of each, unseen
constexpr int64_t kRegisters = 1 << 16, kThreadRegisters = 64;      // of all; of one, at least
constexpr int kBlock = 256, kStripBlock = 512, kLargeBlock = 1024;  // threads
constexpr int64_t kAtOnce = 32;  // registers of a thread, of what it has asked for

int64_t bytes_of(DType type) { return static_cast<int64_t>(size_of(type)); }

int64_t round_up(int64_t count, int64_t unit) { return ceil_divide(count, unit) * unit; }

int last_row(const Kernel& kernel) { return kernel.rows - 1; }

// The one inner axis that an index depends on; -1: none or several.
int inner_axis(const Kernel& kernel, const Expr& index) {
  int found = -1;
  for (int a = kernel.rows; a < static_cast<int>(kernel.axes.size()); a++) {
    if (!depends_on(index, kernel.axes[a].name)) continue;
    if (found >= 0) return -1;
    found = a;
  }
  return found;
}

bool depends_on_rows(const Kernel& kernel, const Expr& index) {
  return std::any_of(kernel.axes.begin(), kernel.axes.begin() + kernel.rows,
                     [&](const Axis& axis) { return depends_on(index, axis.name); });
}

// Where an element stands if rows are counted through: (4*i0 + i1)*7 + j0.
Expr flat_index(const Kernel& kernel, int inner) {
  Expr row = 0;
  for (int a = 0; a < kernel.rows; a++)
    row = row * kernel.axes[a].extent + kernel.axes[a].symbol();
  return row * kernel.axes[inner].extent + kernel.axes[inner].symbol();
}

// What may be staged, with the way it runs.
enum class Run { Along, Across, Once, Other };

Run run_of(const Kernel& kernel, const Expr& index) {
  const int inner = inner_axis(kernel, index);
  if (!depends_on_rows(kernel, index)) return Run::Once;
  if (inner < 0) return Run::Other;
  if ((index - flat_index(kernel, inner)).is_constant()) return Run::Along;
  const bool along = distance(index, kernel.axes[inner].symbol()) == 1;
  const bool across = distance(index, kernel.axes[last_row(kernel)].symbol()) == 1;
  return across && !along ? Run::Across : Run::Other;
}

StagedTile tile_of(const Kernel& kernel, const Expr& index, DType type, int buffer) {
  StagedTile tile;
  tile.type = type;
  tile.index = index;
  tile.buffer = buffer;
  tile.axis = inner_axis(kernel, index);
  tile.count = kernel.axes[tile.axis].extent.constant();
  tile.across = run_of(kernel, index) == Run::Across;
  return tile;
}

// Tiles lie one behind the other.
void place_tiles(StagedRows& staged) {
  staged.bytes = 0;
  for (StagedTile& tile : staged.tiles) {
    tile.offset = staged.bytes;
    staged.bytes += round_up(staged.lines * tile.pitch * bytes_of(tile.type), kPack);
  }
}

// --- short rows: a thread each ---

// Rows in steps of an odd number of words.
int64_t short_pitch(int64_t count, DType type) {
  const int64_t size = bytes_of(type);
  if (size == 2) return count % 4 == 0 ? count + 2 : count;
  return size >= 4 ? count | 1 : count;
}

bool is_short(const Kernel& kernel) {
  int64_t longest = 1;
  for (const Step& step : kernel.steps) {
    if (step.inner.size() > 1) return false;
    longest = std::max(longest, inner_count(kernel, step).constant());
  }
  return longest > 1 && longest < kShortRow && row_count(kernel).constant() >= kManyShort;
}

// Empty where packs reach whole rows as it is, or a thread a row would read what none of its
// neighbours do.
std::vector<StagedTile> short_tiles(const Kernel& kernel) {
  std::vector<StagedTile> tiles;
  bool needed = false;
  auto add = [&](StagedTile tile) {
    tile.pitch = short_pitch(tile.count, tile.type);
    needed = needed || tile.count * bytes_of(tile.type) % kPack != 0;
    tiles.push_back(tile);
  };
  for (int id = 0; id < static_cast<int>(kernel.scalars.size()); id++) {
    const Scalar& load = kernel.scalars[id];
    if (load.kind != ScalarKind::Load) continue;
    const Run run = run_of(kernel, load.index);
    if (load.mask >= 0 || !load.operands.empty()) return {};
    if (run == Run::Other && inner_axis(kernel, load.index) >= 0) return {};
    needed = needed || run == Run::Across;
    if (run != Run::Along) continue;
    add(tile_of(kernel, load.index, load.dtype, load.buffer));
    tiles.back().load = id;
  }
  for (int s = 0; s < static_cast<int>(kernel.steps.size()); s++) {
    const Step& step = kernel.steps[s];
    if (step.kind != StepKind::Store || step.inner.empty()) continue;
    const Run run = run_of(kernel, step.index);
    if (run == Run::Across) continue;
    if (run != Run::Along || step.other >= 0) return {};
    add(tile_of(kernel, step.index, step.dtype, step.buffer));
    tiles.back().step = s;
  }
  return needed ? tiles : std::vector<StagedTile>{};
}

StagedRows stage_short_rows(const CudaText& text, RowShape& shape) {
  StagedRows staged;
  staged.tiles = short_tiles(text.kernel);
  if (staged.tiles.empty()) return {};
  int64_t loaded = 0;  // bytes a row
  for (const StagedTile& tile : staged.tiles)
    loaded += tile.load >= 0 ? tile.count * bytes_of(tile.type) : 0;
  int64_t turns = 1;
  while (turns < kMostTurns && turns * loaded < kLoaded && loaded > 0) turns *= 2;
  int block = kBlock;
  for (; block >= 64; block /= 2) {
    staged.lines = block * turns;
    place_tiles(staged);
    if (staged.bytes <= kShortShared) break;
  }
  if (block < 64) return {};
  shape.lanes = shape.most_vector = 1;
  shape.block = block;
  shape.rows_a_block = block;
  shape.turns = turns;
  spread_rows(text, shape);
  return staged;
}

// --- strips: neighbouring rows that lie side by side ---

// Rows of whole packs, 4 words modulo 8.
int64_t strip_pitch(int64_t count, DType type) {
  return (round_up(count * bytes_of(type), 32) + 16) / bytes_of(type);
}

std::vector<StagedTile> strip_tiles(const Kernel& kernel) {
  std::vector<StagedTile> tiles;
  for (int id = 0; id < static_cast<int>(kernel.scalars.size()); id++) {
    const Scalar& load = kernel.scalars[id];
    if (load.kind != ScalarKind::Load || load.mask >= 0 || !load.operands.empty()) continue;
    if (run_of(kernel, load.index) != Run::Across) continue;
    tiles.push_back(tile_of(kernel, load.index, load.dtype, load.buffer));
    tiles.back().load = id;
    tiles.back().pitch = strip_pitch(tiles.back().count, load.dtype);
  }
  return tiles;
}

// As many rows as fit comfortably; whole sectors if at all possible, else halves of them.
bool choose_lines(StagedRows& staged) {
  int64_t smallest = 8;
  for (const StagedTile& tile : staged.tiles)
    smallest = std::min(smallest, bytes_of(tile.type));
  const int64_t sector = kSector / smallest;
  const auto fits = [&](int64_t lines, int64_t most) {
    staged.lines = lines;
    place_tiles(staged);
    return staged.bytes <= most;
  };
  return fits(4 * sector, kLittle) || fits(2 * sector, kThreeBlocks) ||
         fits(sector, kMostShared) || fits(sector / 2, kMostShared);
}

// One block takes what blocks of a cluster would share.
void share_rows_in_a_block(const CudaText& text, RowShape& shape) {
  if (shape.cluster == 1) return;
  int64_t chunks = 1;
  for (const Spread& spread : shape.spreads) chunks = std::max(chunks, spread.chunks);
  shape.cluster = 1;
  shape.warps = static_cast<int>(std::min(chunks, kMostWarps));
  spread_rows(text, shape);
}

// Loads run across rows and stores along them.
bool is_mixed(const Kernel& kernel) {
  return !strip_tiles(kernel).empty() &&
         std::any_of(kernel.steps.begin(), kernel.steps.end(), [&](const Step& step) {
           if (step.kind != StepKind::Store || step.inner.size() != 1) return false;
           const Expr inner = kernel.axes[step.inner[0]].symbol();
           const Expr row = kernel.axes[last_row(kernel)].symbol();
           return distance(step.index, inner) == 1 && distance(step.index, row) != 1;
         });
}

StagedRows stage_strips(const CudaText& text, RowShape& shape) {
  StagedRows staged;
  staged.tiles = strip_tiles(text.kernel);
  if (staged.tiles.empty() || !choose_lines(staged)) return {};
  share_rows_in_a_block(text, shape);
  const int64_t row = shape.lanes * shape.warps;  // threads
  const int64_t block = staged.bytes > kTwoBlocks ? kLargeBlock : kStripBlock;
  int64_t rows = staged.lines;
  while (rows > 1 && rows * row > block) rows /= 2;
  if (rows * row < 32) return {};
  shape.block = static_cast<int>(rows * row);
  shape.rows_a_block = rows;
  shape.turns = staged.lines / rows;
  staged.resident = static_cast<int>(std::min(kShared / (staged.bytes + kBesides),
                                              kRegisters / (kThreadRegisters * shape.block)));
  return staged;
}

// --- the text ---

std::string pack_of(const StagedTile& tile, int vector) {
  return str("tc_pack<", c_type(tile.type), ", ", vector, ">");
}

// Copies packs number `part` of the block's: `open` says where each is and whether it is there
// at all; all that is asked for at once before the first is put.
template <typename Open, typename Get, typename Put>
void write_copy(CudaText& text, const StagedTile& tile, int block, int64_t packs, int vector,
                Open open, Get get, Put put) {
  Text& out = text.out;
  const int64_t turns = ceil_divide(packs, block);
  const int64_t words = std::max<int64_t>(1, vector * bytes_of(tile.type) / 4);
  const int64_t batch = std::min(turns, std::max<int64_t>(1, kAtOnce / words));
  out.open("");
  if (turns > batch) {
    out.line("#pragma unroll 1");
    out.open(str("for (int first = 0; first < ", turns, "; first += ", batch, ")"));
  }
  out.line(str(pack_of(tile, vector), " asked[", batch, "];"));
  const std::string number = str(turns > batch ? "(first + k)" : "k", " * ", block);
  const auto each = [&](const auto& body) {
    out.line("#pragma unroll");
    out.open(str("for (int k = 0; k < ", batch, "; k++)"));
    out.line(str("const int part = ", number, " + (int)threadIdx.x;"));
    if (ceil_divide(turns, batch) * batch * block != packs)
      out.line(str("if (part >= ", packs, ") continue;"));
    open();
    body();
    out.close();
  };
  each(get);
  each(put);
  if (turns > batch) out.close();
  out.close();
}

// Whether packs of `vector` rows are packs in memory everywhere.
int strip_vector(CudaText& text, const StagedTile& tile, int64_t lines) {
  const Kernel& kernel = text.kernel;
  const int last = last_row(kernel);
  int vector = static_cast<int>(std::min<int64_t>(kPack / bytes_of(tile.type), 8));
  vector = static_cast<int>(std::min<int64_t>(vector, lines));
  for (; vector > 1; vector /= 2) {
    text.set_vector(last, vector);
    if (kernel.axes[last].extent.constant() % vector == 0 &&
        text.is_wide(tile.index, tile.buffer))
      break;
  }
  text.set_vector(-1, 1);
  return vector;
}

// tile[s*pitch + e] = x[.. row + s .. e ..]
void copy_strip(CudaText& text, const RowShape& shape, const StagedRows& staged,
                const StagedTile& tile) {
  const int vector = strip_vector(text, tile, staged.lines);
  const int64_t across = staged.lines / vector, rows = row_count(text.kernel).constant();
  const std::string from = pointer_name(text.program.buffers[tile.buffer]);
  const bool partial = rows % staged.lines != 0;
  const auto open = [&] {
    text.out.line(
        str("const int s = part % ", across, " * ", vector, ", e = part / ", across, ";"));
    if (partial) text.out.line(str("if (first_row + s >= ", rows, ") continue;"));
  };
  write_copy(
      text, tile, shape.block, across * tile.count, vector, open,
      [&] {
        text.declare("row", "first_row + s");
        text.unpack_rows("row");
        text.declare(text.kernel.axes[tile.axis].name, "e");
        text.out.line(str("asked[k] = *(const ", pack_of(tile, vector), "*)(", from, " + ",
                          text.scalars.index(tile.index), ");"));
      },
      [&] {
        text.out.line("#pragma unroll");
        text.out.line(str("for (int v = 0; v < ", vector, "; v++) ", tile.name(), "[(s + v) * ",
                          tile.pitch, " + e] = asked[k].at[v];"));
      });
}

// What neighbouring elements of all the block's rows have as a pack, both ways.
struct FlatCopy {
  int vector = 1;
  int64_t elements = 0;  // of the block
  std::string memory;    // "in_x + first_row*7"
  bool partial = false;  // the last pack may be
  std::string left;      // "" or how many elements there are from `place` on
};

FlatCopy flat_copy(const CudaText& text, const StagedRows& staged, const StagedTile& tile) {
  FlatCopy copy;
  const Kernel& kernel = text.kernel;
  const Buffer& buffer = text.program.buffers[tile.buffer];
  const int64_t offset = (tile.index - flat_index(kernel, tile.axis)).constant();
  const int64_t rows = row_count(kernel).constant(), all = rows * tile.count;
  copy.elements = staged.lines * tile.count;
  copy.vector = static_cast<int>(std::min<int64_t>(kPack / bytes_of(tile.type), 8));
  while (copy.vector > 1 && (buffer.align < kPack || offset % copy.vector != 0 ||
                             copy.elements % copy.vector != 0))
    copy.vector /= buffer.align < kPack ? copy.vector : 2;
  const std::string extra = offset == 0 ? "" : str(" + ", offset);
  copy.memory = str(pointer_name(buffer), extra, " + first_row * ", tile.count, " + place");
  copy.partial = all % copy.vector != 0;
  if (rows % staged.lines != 0) copy.left = str(all, " - first_row * ", tile.count, " - place");
  return copy;
}

// "place", or where that element stands if rows are longer than what they hold
std::string in_tile(const StagedTile& tile, const std::string& place) {
  const std::string padding = tile.pitch == tile.count ? ""
                                                       : str(" + (", place, ") / ", tile.count,
                                                             " * ", tile.pitch - tile.count);
  return str(tile.name(), "[", place, padding, "]");
}

void copy_rows(CudaText& text, const RowShape& shape, const StagedRows& staged,
               const StagedTile& tile) {
  const FlatCopy copy = flat_copy(text, staged, tile);
  const std::string type = pack_of(tile, copy.vector);
  const bool packed = tile.pitch == tile.count;
  const auto open = [&] {
    text.out.line(str("const int place = part * ", copy.vector, ";"));
    if (!copy.left.empty()) {
      text.declare("left", copy.left);
      text.out.line("if (left <= 0) continue;");
    }
  };
  const auto pack_in_tile = [&](const std::string& qualifier) {
    return str("*(", qualifier, type, "*)&", tile.name(), "[place]");
  };
  const auto each = [&](const std::string& a, const std::string& b) {
    text.out.line("#pragma unroll");
    text.out.line(str("for (int v = 0; v < ", copy.vector, "; v++) ", a, " = ", b, ";"));
  };
  const std::string element = in_tile(tile, "place + v");
  const bool loads = tile.load >= 0;
  const auto get = [&] {
    if (!loads && packed) return text.out.line("asked[k] = " + pack_in_tile("const ") + ";");
    if (!loads) return each("asked[k].at[v]", element);
    text.out.line(!copy.partial
                      ? str("asked[k] = *(const ", type, "*)(", copy.memory, ");")
                      : str("asked[k] = tc_load<", copy.vector, ">(", copy.memory, ", left);"));
  };
  const auto put = [&] {
    if (loads && packed) return text.out.line(pack_in_tile("") + " = asked[k];");
    if (loads) return each(element, "asked[k].at[v]");
    text.out.line(!copy.partial ? str("*(", type, "*)(", copy.memory, ") = asked[k];")
                                : str("tc_store(", copy.memory, ", asked[k], left);"));
  };
  write_copy(text, tile, shape.block, copy.elements / copy.vector, copy.vector, open, get, put);
}

}  // namespace

std::string StagedTile::name() const {
  return load >= 0 ? str("tile_", load) : str("result_", step);
}

bool StagedRows::holds(int load) const {
  return std::any_of(tiles.begin(), tiles.end(),
                     [&](const StagedTile& tile) { return tile.load == load; });
}

const StagedTile* StagedRows::stored(int step) const {
  for (const StagedTile& tile : tiles) {
    if (step >= 0 && tile.step == step) return &tile;
  }
  return nullptr;
}

StagedRows stage_rows(const CudaText& text, RowShape& shape) {
  const Kernel& kernel = text.kernel;
  const int64_t rows = row_count(kernel).constant();
  const bool usual = std::all_of(kernel.steps.begin(), kernel.steps.end(), [](const Step& s) {
    return s.kind == StepKind::Reduce || s.kind == StepKind::Store;
  });
  if (kernel.rows == 0 || kernel.schedule.warps_per_row > 0 || !usual) return {};
  if (is_short(kernel)) return stage_short_rows(text, shape);
  return rows >= kMany ? stage_strips(text, shape) : StagedRows{};
}

bool goes_in_strips(const CudaText& text) {
  const Kernel& kernel = text.kernel;
  StagedRows staged;
  if (kernel.rows == 0 || row_count(kernel).constant() < kMany || !is_mixed(kernel))
    return false;
  if (is_short(kernel)) return !short_tiles(kernel).empty();
  staged.tiles = strip_tiles(kernel);
  return choose_lines(staged);
}

std::string open_staged_rows(CudaText& text, const RowShape& shape, StagedRows& staged) {
  Text& out = text.out;
  const int threads = shape.lanes * shape.warps;
  const int64_t rows = row_count(text.kernel).constant();
  if (shape.warps > 1) {
    out.line(str("const int warp = (threadIdx.x >> 5) % ", shape.warps, ";"));
    out.line(str("const int group = threadIdx.x / ", threads, ";"));
  }
  out.line(str("TC_SHARED(shared, ", staged.bytes, ");"));
  for (const StagedTile& tile : staged.tiles)
    out.line(str(c_type(tile.type), "* const ", tile.name(), " = (", c_type(tile.type),
                 "*)(shared + ", tile.offset, ");"));
  const std::string wide = text.integer == "int" ? "(int)" : "(long long)";
  text.declare("first_row", str(wide, "blockIdx.x * ", staged.lines));
  bool loads = false;
  for (const StagedTile& tile : staged.tiles) {
    if (tile.load < 0) continue;
    loads = true;
    tile.across ? copy_strip(text, shape, staged, tile) : copy_rows(text, shape, staged, tile);
  }
  if (loads) out.line("__syncthreads();");
  text.scalars.element = [&text, &staged, usual = text.scalars.element](int id) {
    for (const StagedTile& tile : staged.tiles) {
      if (tile.load != id) continue;
      return staged.vector > 1 ? str("pack_", id, ".at[v]")
                               : str(tile.name(), "[line * ", tile.pitch, " + e + v]");
    }
    return usual(id);
  };
  if (shape.turns > 1) {
    out.line(shape.warps > 1 || shape.lanes == 32 ? "#pragma unroll 1" : "#pragma unroll");
    out.open(str("for (int turn = 0; turn < ", shape.turns, "; turn++)"));
  }
  const std::string turn = shape.turns > 1 ? str("turn * ", shape.rows_a_block, " + ") : "";
  const std::string line = str(turn, "(int)threadIdx.x / ", threads);
  if (rows % staged.lines == 0) {
    out.line(str("const int line = ", line, ";"));
    text.declare("row", "first_row + line");
    return "";
  }
  // Threads beyond the last row repeat it: all must meet.
  text.declare("asked", "first_row + " + line);
  out.line(str("const bool live = asked < ", rows, ";"));
  text.declare("row", str("live ? asked : ", rows - 1));
  out.line("const int line = row - first_row;");
  return "live";
}

void load_staged_packs(CudaText& text, StagedRows& staged, const Spread& spread,
                       const std::vector<int>& ids, const std::vector<bool>& defined) {
  staged.vector = spread.vector;
  for (const StagedTile& tile : staged.tiles) {
    if (spread.vector == 1 || std::count(ids.begin(), ids.end(), tile.load) == 0) continue;
    if (defined[tile.load] || text.is_kept(tile.load)) continue;
    const std::string type = pack_of(tile, spread.vector);
    text.out.line(str("const ", type, " pack_", tile.load, " = *(const ", type, "*)&",
                      tile.name(), "[line * ", tile.pitch, " + e];"));
  }
}

void close_staged_rows(CudaText& text, const RowShape& shape, const StagedRows& staged,
                       int meetings) {
  // The next rows' results take the place of these: all have read those before the last meeting.
  const bool meets_again = shape.warps > 1 && shape.turns > 1 && meetings < 2;
  if (meets_again) text.out.line("__syncthreads();");
  if (shape.turns > 1) text.out.close();
  bool met = false;
  for (const StagedTile& tile : staged.tiles) {
    if (tile.step < 0) continue;
    if (!met) text.out.line("__syncthreads();");
    met = true;
    copy_rows(text, shape, staged, tile);
  }
}

}  // namespace tiny_compile

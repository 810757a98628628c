// How do a block's rows come into shared memory, and results out of it? All that a thread copies
// is asked for before the first pack is put; then all wait for each other, once:
//
//   strip:  for k: asked[k] = tc_piece(4 rows s.. at element e);  for k: tile_0[s + v][e] = ..
//   rows:   for k: asked[k] = *(pack of 4 elements, of whichever rows); tile_0 the same
//   __syncthreads();
//   for turn: line = the thread's row in the block; as cuda_rows does, but for in_x[..] it reads
//     tile_0[line*pitch + e]
#include "tiny_compile/codegen/cuda_staged.h"

#include <algorithm>

namespace tiny_compile {
namespace {

constexpr int64_t kPack = 16;    // bytes
constexpr int64_t kAtOnce = 32;  // registers of a thread, of what it has asked for

std::string pack_of(CudaText& text, const StagedTile& tile, int vector) {
  return str(text.calls("tc_pack"), "<", c_type(tile.type), ", ", vector, ">");
}

// Copies packs number `part` of the block's: `open` says where each is and whether it is there
// at all; all that is asked for at once before the first is put.
template <typename Open, typename Get, typename Put>
void write_copy(CudaText& text, const StagedTile& tile, int block, int64_t packs, int vector,
                Open open, Get get, Put put) {
  Text& out = text.out;
  const int64_t turns = ceil_divide(packs, block);
  const int64_t words = std::max<int64_t>(1, vector * size_of(tile.type) / 4);
  const int64_t batch = std::min(turns, std::max<int64_t>(1, kAtOnce / words));
  out.open("");
  if (turns > batch) {
    out.line("#pragma unroll 1");
    out.open(str("for (int first = 0; first < ", turns, "; first += ", batch, ")"));
  }
  out.line(str(pack_of(text, tile, vector), " asked[", batch, "];"));
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
  const int last = kernel.rows - 1;
  int vector = static_cast<int>(std::min<int64_t>(kPack / size_of(tile.type), 8));
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

void write_each(CudaText& text, int vector, const std::string& a, const std::string& b) {
  text.out.line("#pragma unroll");
  text.out.line(str("for (int v = 0; v < ", vector, "; v++) ", a, " = ", b, ";"));
}

// tile[s*pitch + e] = x[.. row + s .. e ..], or the other way round.
void copy_strip(CudaText& text, const RowShape& shape, const StagedRows& staged,
                const StagedTile& tile) {
  const int vector = strip_vector(text, tile, staged.lines);
  const int64_t across = staged.lines / vector, rows = row_count(text.kernel).constant();
  const int64_t all = text.kernel.axes[tile.axis].extent.constant();
  const std::string memory = pointer_name(text.program.buffers[tile.buffer]);
  const auto open = [&] {
    text.out.line(
        str("const int s = part % ", across, " * ", vector, ", e = part / ", across, ";"));
    if (rows % staged.lines != 0)
      text.out.line(str("if (first_row + s >= ", rows, ") continue;"));
    if (staged.shared && all % (tile.count * shape.cluster) != 0)
      text.out.line(str("if (own + e >= ", all, ") continue;"));
  };
  const auto place_in_memory = [&] {
    text.declare("row", "first_row + s");
    text.unpack_rows("row");
    text.declare(text.kernel.axes[tile.axis].name, staged.shared ? "own + e" : "e");
    return str(memory, " + ", text.scalars.index(tile.index));
  };
  const std::string element = str(tile.name(), "[(s + v) * ", tile.pitch, " + e]");
  const auto get = [&] {
    if (tile.load >= 0)
      text.out.line(str("asked[k] = ", text.calls("tc_piece"), "<", vector, ">(",
                        place_in_memory(), ");"));
    if (tile.load < 0) write_each(text, vector, "asked[k].at[v]", element);
  };
  const auto put = [&] {
    if (tile.load >= 0) write_each(text, vector, element, "asked[k].at[v]");
    if (tile.load < 0)
      text.out.line(
          str("*(", pack_of(text, tile, vector), "*)(", place_in_memory(), ") = asked[k];"));
  };
  write_copy(text, tile, shape.block, across * tile.count, vector, open, get, put);
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
  const int64_t rows = row_count(kernel).constant(), all = rows * tile.count;
  copy.elements = staged.lines * tile.count;
  copy.vector = static_cast<int>(std::min<int64_t>(kPack / size_of(tile.type), 8));
  while (copy.vector > 1 && (buffer.align < kPack || tile.first % copy.vector != 0 ||
                             copy.elements % copy.vector != 0))
    copy.vector /= buffer.align < kPack ? copy.vector : 2;
  const std::string extra = tile.first == 0 ? "" : str(" + ", tile.first);
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
  const std::string type = pack_of(text, tile, copy.vector);
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
  const std::string element = in_tile(tile, "place + v");
  const bool loads = tile.load >= 0;
  const auto get = [&] {
    if (!loads && packed) return text.out.line("asked[k] = " + pack_in_tile("const ") + ";");
    if (!loads) return write_each(text, copy.vector, "asked[k].at[v]", element);
    text.out.line(!copy.partial ? str("asked[k] = *(const ", type, "*)(", copy.memory, ");")
                                : str("asked[k] = ", text.calls("tc_load"), "<", copy.vector,
                                      ">(", copy.memory, ", left);"));
  };
  const auto put = [&] {
    if (loads && packed) return text.out.line(pack_in_tile("") + " = asked[k];");
    if (loads) return write_each(text, copy.vector, element, "asked[k].at[v]");
    text.out.line(!copy.partial
                      ? str("*(", type, "*)(", copy.memory, ") = asked[k];")
                      : str(text.calls("tc_store"), "(", copy.memory, ", asked[k], left);"));
  };
  write_copy(text, tile, shape.block, copy.elements / copy.vector, copy.vector, open, get, put);
}

void copy_tile(CudaText& text, const RowShape& shape, const StagedRows& staged,
               const StagedTile& tile) {
  tile.across ? copy_strip(text, shape, staged, tile) : copy_rows(text, shape, staged, tile);
}

void declare_tiles(CudaText& text, const RowShape& shape, const StagedRows& staged) {
  Text& out = text.out;
  if (shape.is_shared()) {
    out.line(str("const int warp = (threadIdx.x >> 5) % ", shape.warps, ";"));
    out.line(str("const int group = threadIdx.x / ", shape.lanes * shape.warps, ";"));
  }
  out.line(str(text.calls("TC_SHARED"), "(shared, ", staged.bytes, ");"));
  for (const StagedTile& tile : staged.tiles)
    out.line(str(c_type(tile.type), "* const ", tile.name(), " = (", c_type(tile.type),
                 "*)(shared + ", tile.offset, ");"));
  const std::string wide = text.integer == "int" ? "(int)" : "(long long)";
  const std::string blocks = staged.shared ? str(" / ", shape.cluster) : "";
  text.declare("first_row", str(wide, "blockIdx.x", blocks, " * ", staged.lines));
  if (staged.shared) text.declare("own", str("rank * ", staged.tiles[0].count));
}

// The loop over the rows of a thread. The flag that there is such a row, where there may be none.
std::string open_lines(CudaText& text, const RowShape& shape, const StagedRows& staged) {
  Text& out = text.out;
  const int64_t rows = row_count(text.kernel).constant();
  if (shape.turns > 1) {
    out.line(shape.lanes > 1 ? "#pragma unroll 1" : "#pragma unroll");
    out.open(str("for (int turn = 0; turn < ", shape.turns, "; turn++)"));
  }
  const std::string turn = shape.turns > 1 ? str("turn * ", shape.rows_a_block, " + ") : "";
  const std::string line = str(turn, "(int)threadIdx.x / ", shape.lanes * shape.warps);
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

}  // namespace

std::string open_staged_rows(CudaText& text, const RowShape& shape, StagedRows& staged) {
  declare_tiles(text, shape, staged);
  bool loads = false;
  for (const StagedTile& tile : staged.tiles) {
    if (tile.load < 0) continue;
    loads = true;
    copy_tile(text, shape, staged, tile);
  }
  if (loads) text.out.line("__syncthreads();");
  text.scalars.element = [&staged, usual = text.scalars.element](int id) {
    for (const StagedTile& tile : staged.tiles) {
      if (tile.load != id) continue;
      return staged.vector > 1
                 ? str("pack_", id, ".at[v]")
                 : str(tile.name(), "[line * ", tile.pitch, " + ", staged.place(), " + v]");
    }
    return usual(id);
  };
  return open_lines(text, shape, staged);
}

void load_staged_packs(CudaText& text, StagedRows& staged, const Spread& spread,
                       const std::vector<int>& ids, const std::vector<bool>& defined) {
  staged.vector = spread.vector;
  for (const StagedTile& tile : staged.tiles) {
    if (spread.vector == 1 || std::count(ids.begin(), ids.end(), tile.load) == 0) continue;
    if (defined[tile.load] || text.is_kept(tile.load)) continue;
    const std::string type = pack_of(text, tile, spread.vector);
    text.out.line(str("const ", type, " pack_", tile.load, " = *(const ", type, "*)&",
                      tile.name(), "[line * ", tile.pitch, " + ", staged.place(), "];"));
  }
}

void close_rows(CudaText& text, const RowShape& shape, const StagedRows& staged, int meetings) {
  // The next rows' results take the place of these: all have read those before the last meeting.
  const bool meets_again =
      staged.lines > 0 && shape.warps > 1 && shape.turns > 1 && meetings < 2;
  if (meets_again) text.out.line("__syncthreads();");
  if (shape.turns > 1) text.out.close();
  bool met = false;
  for (const StagedTile& tile : staged.tiles) {
    if (tile.step < 0) continue;
    if (!met) text.out.line("__syncthreads();");
    met = true;
    copy_tile(text, shape, staged, tile);
  }
}

void write_staged_store(CudaText& text, const StagedRows& staged, const Step& step) {
  const StagedTile* tile = staged.stored(static_cast<int>(&step - text.kernel.steps.data()));
  if (!tile) return text.write_store(step);
  text.out.line(str(tile->name(), "[line * ", tile->pitch, " + ", staged.place(), " + v] = ",
                    exact_storage(text.calls, step.dtype, text.scalars.name(step.value)), ";"));
}

void declare_shared(CudaText& text, const RowShape& shape, const std::string& type,
                    const std::string& name, int64_t count) {
  const bool one = shape.rows_a_block == 1;
  const std::string all = one ? name : "all_" + name;
  const std::string rows = one ? "" : str("[", shape.rows_a_block, "]");
  text.out.line(str("__shared__ ", type, " ", all, rows, "[", count, "];"));
  if (!one) text.out.line(str(type, "* const ", name, " = ", all, "[group];"));
}

std::string first_of_row(const RowShape& shape, const StagedRows& staged) {
  if (shape.warps == 1) return "lane == 0";
  return staged.lines == 0 ? "threadIdx.x == 0" : "lane == 0 && warp == 0";
}

}  // namespace tiny_compile

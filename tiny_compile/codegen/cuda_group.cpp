// How do many kernels become one? Their text is the same but for buffers and, where points are
// counted, their number. It becomes a function of one block; the kernel finds in a table whose turn
// its block is:
//
//   blocks     0 .. 2       3          4 .. 12
//   members    w (700)      b (30)     v (2100)        first block, points, addresses
//
// The table is a parameter, so that a recorded graph keeps its own. It has room for a power of two,
// so that launches of nearly as many members share a function.
#include "tiny_compile/codegen/cuda_group.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace tiny_compile {

void write_cuda_group(CudaText& text, KernelEntry& entry, int room) {
  std::vector<std::string> arguments = {"{blockIdx.x - table.first[number]}"};
  if (text.is_counted()) arguments.push_back(str("(", text.integer, ")member.points"));
  for (size_t b = 0; b < entry.buffers.size(); b++)
    arguments.push_back(str("(", text.pointer_type(entry.buffers[b]), ")member.at[", b, "]"));
  const std::string shape = str("<", room, ", ", entry.buffers.size(), ">");
  text.out.line("");
  text.out.open(str("extern \"C\" __global__ void ", text.attributes, entry.function,
                    "(const __grid_constant__ ", text.calls("tc_table"), shape, " table)"));
  text.out.line("const int number = tc_member_of(table, blockIdx.x);");
  text.out.line("const auto& member = table.members[number];");
  text.out.line(str(block_function(entry.function), "(", join(arguments, ", "), ");"));
  text.out.close();
  entry.room = room;
}

std::vector<Start> starts_of(const std::vector<KernelEntry>& kernels,
                             const std::vector<int>& launch) {
  std::vector<Start> starts;
  for (const int kernel : launch) {
    const KernelEntry& entry = kernels[kernel];
    if (entry.grid.is_constant(0)) continue;
    const auto has_room = [&](const Start& start) {
      const KernelEntry& first = kernels[start.kernels[0]];
      return first.function == entry.function &&
             static_cast<int>(start.kernels.size()) < entry.room;
    };
    auto start = std::find_if(starts.begin(), starts.end(), has_room);
    if (start == starts.end()) start = starts.insert(start, Start{});
    start->kernels.push_back(kernel);
    start->grid += entry.grid.constant();
  }
  return starts;
}

std::vector<int64_t> table_of(const std::vector<KernelEntry>& kernels, const Start& start,
                              const std::vector<void*>& addresses) {
  const KernelEntry& entry = kernels[start.kernels[0]];
  std::vector<uint32_t> firsts(static_cast<size_t>(entry.room),
                               std::numeric_limits<uint32_t>::max());
  std::vector<int64_t> table((firsts.size() + 1) / 2);
  uint32_t first = 0;
  for (size_t k = 0; k < start.kernels.size(); k++) {
    const KernelEntry& member = kernels[start.kernels[k]];
    firsts[k] = first;
    table.push_back(member.points);
    for (const int buffer : member.buffers)
      table.push_back(reinterpret_cast<intptr_t>(addresses[buffer]));
    first += static_cast<uint32_t>(member.grid.constant());
  }
  std::memcpy(table.data(), firsts.data(), firsts.size() * sizeof(uint32_t));
  table.resize((firsts.size() + 1) / 2 + firsts.size() * (1 + entry.buffers.size()));
  return table;
}

}  // namespace tiny_compile

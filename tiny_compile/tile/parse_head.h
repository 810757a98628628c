// Reading what stands above a tile's statements: its kernel and sizes, blocks or units, and arrays.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tiny_compile/loops/sized_schedules.h"
#include "tiny_compile/tile/parse_element.h"

namespace tiny_compile {

class HeadParser : protected ElementParser {
 protected:
  static constexpr int64_t kMostTogether = 1 << 10;  // units

  HeadParser(const Program& program, std::string_view text, size_t at)
      : ElementParser(program, text, at) {
    for (size_t k = 0; k < program.kernels.size(); k++)
      kernels_[program.kernels[k].name] = static_cast<int>(k);
  }

  void parse_head() {
    if (!accept_word("tile"))
      error(at_, "a tile starts with: tile KERNEL grid 4 block 1 warps {");
    number_ = look_up(kernels_, "kernel");
    tile_.kernel = program_.kernels[number_];
    if (accept_word("for")) {
      const size_t start = at_;
      const std::vector<SizeRange> when = ranges();
      const std::vector<SizedSchedule>& all = tile_.kernel.sized;
      const auto own = std::find_if(all.begin(), all.end(),
                                    [&](const SizedSchedule& one) { return one.when == when; });
      if (own == all.end()) error(start, "its kernel has no schedule for these sizes");
      sized_ = static_cast<int>(own - all.begin());
      program_ = for_sizes(program_, tile_.kernel, static_cast<size_t>(sized_));
      tile_.kernel = program_.kernels[0];
    }
    for (const Expr& size : tiny_compile::sizes(program_)) sizes_[size.name()] = size;
    own_scalars_ = tile_.kernel.scalars.size();
    kernel_ = &tile_.kernel;
    for (size_t id = 0; id < kernel_->scalars.size(); id++)
      values_[static_cast<int64_t>(id)] = static_cast<int>(id);
    if (program_.target == Target::Cpp)
      parse_units();
    else
      parse_grid();
    open();
    names_ = given(tile_);
  }

  void parse_units() {
    expect_word("units");
    skip_blanks();
    const size_t start = at_;
    tile_.units = extent();
    if (!is_on_cpu(tile_)) error(start, "a tile of no units");
    if (accept_word("grain")) tile_.grain = extent();
    if (accept_word("together"))
      tile_.together = static_cast<int>(bounded(1, kMostTogether, "units that go together"));
  }

  void parse_grid() {
    expect_word("grid"), tile_.grid = sized("a grid");
    if (accept_word("cluster"))
      tile_.cluster = static_cast<int>(bounded(1, 16, "a cluster's blocks"));
    expect_word("block"), tile_.warps = static_cast<int>(bounded(1, 32, "a block's warps"));
    expect_word("warps");
    if (accept_word("resident"))
      tile_.resident = static_cast<int>(bounded(1, 32, "the number of resident blocks"));
    tile_.alone = accept_word("alone");
  }

  bool parse_array() {
    Array array;
    array.space = accept_word("shared")    ? Space::Shared
                  : accept_word("cluster") ? Space::Cluster
                  : accept_word("l1")      ? Space::L1
                  : accept_word("l2")      ? Space::L2
                  : accept_word("memory")  ? Space::Memory
                  : accept_word("kept")    ? Space::Kept
                                           : Space::Register;
    if (array.space == Space::Register && !accept_word("array")) return false;
    array.name = new_name("the array's name");
    const int id = static_cast<int>(tile_.arrays.size());
    if (!arrays_.emplace(array.name, id).second)
      error(at_ - array.name.size(), "a second array of this name");
    expect(':', "the array's name");
    array.dtype = dtype();
    expect('[', "the dtype");
    const char* const what = "an array's size";
    array.size = array.space == Space::Memory ? sized(what) : Expr(bounded(1, kMost, what));
    expect(']', "the size");
    array.packed = accept_word("packed");
    end_line();
    tile_.arrays.push_back(std::move(array));
    return true;
  }

  int number_ = -1;  // of the kernel
  int sized_ = -1;   // of its schedules for some sizes
  size_t own_scalars_ = 0;
  Names kernels_;
};

}  // namespace tiny_compile

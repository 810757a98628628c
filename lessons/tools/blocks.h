// The marked blocks of a Markdown file, and how fresh text is set against what stands there.
#pragma once

#include <string>
#include <vector>

namespace tiny_compile::lessons {

using Lines = std::vector<std::string>;

Lines split_lines(const std::string& text);
std::string join_lines(const Lines& lines);  // each with its newline

// From <!-- KIND: ARGUMENT --> to <!-- end -->; markers inside ``` fences are text.
struct Block {
  std::string kind, argument;  // "code", "tiny_compile/passes/cse.cpp#cse"
  size_t first = 0, last = 0;  // lines between the markers: [first, last)
};

// Throws tc::Error where a block does not end.
std::vector<Block> find_blocks(const std::string& path, const Lines& lines);

// Whether the stored lines cover the fresh ones: "[..]" stands for any part of a line, a line
// that is "..." alone for any lines.
bool covers(const Lines& stored, const Lines& fresh);

// The fresh lines, but a stored line stays where it covers its partner, wildcards and all.
Lines merge(const Lines& stored, const Lines& fresh);

// "- old" and "+ new" lines with two lines around each change.
std::string difference(const Lines& before, const Lines& after);

}  // namespace tiny_compile::lessons

// Files that are written whole or not at all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tiny_compile {

// The file holds these pieces, one after the other, when this returns, also if the machine then
// loses power. Until then, whatever ends the process, it holds what it held before; a process that
// is killed may leave a file "<path>.<number>.tmp". What is no regular file, such as a pipe, is
// written to as it is. Throws tc::Error: "cannot write x: No space left on device; ...".
void write_whole(const std::string& path, const std::vector<std::string_view>& pieces);

}  // namespace tiny_compile

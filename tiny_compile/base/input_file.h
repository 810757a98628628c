// Files that a user names: read as far as they are asked for, never without end.
#pragma once

#include <istream>
#include <string>

namespace tiny_compile {

// A regular file or a pipe. Devices and directories are refused: /dev/zero has no end.
class InputFile {
 public:
  explicit InputFile(const std::string& path);  // throws tc::Error: "cannot read x: ..."
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // The next bytes, fewer only at the end of the file. Memory is taken as they come.
  std::string read(size_t bytes);

 private:
  std::string path_;
  int descriptor_;
};

// Texts of graphs and programs: the whole file, or the whole stream. Throws tc::Error
// above 256 MiB.
inline constexpr size_t kMostText = size_t{1} << 28;
std::string read_text(const std::string& path);
std::string read_text(std::istream& in, const std::string& name);

}  // namespace tiny_compile

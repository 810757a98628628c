// What may a user's path be? Nearly anything, so that what is read is bounded and what cannot be
// read says why:
//
//   read_text("/dev/zero")   =>   cannot read /dev/zero: it is neither a file nor a pipe
#include "tiny_compile/base/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tiny_compile/base/error.h"

namespace tiny_compile {
namespace {

constexpr size_t kPiece = size_t{1} << 20;

[[noreturn]] void fail_too_long(const std::string& name) {
  fail("cannot read ", name, ": it holds more than ", kMostText >> 20, " MiB of text");
}

std::string whole(std::string text, const std::string& name) {
  if (text.size() > kMostText) fail_too_long(name);
  return text;
}

}  // namespace

InputFile::InputFile(const std::string& path)
    : path_(path), descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor_ < 0) fail("cannot read ", path, ": ", std::strerror(errno));
  struct stat status = {};
  const bool known = fstat(descriptor_, &status) == 0;
  if (known && (S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode))) return;
  close(descriptor_);
  fail("cannot read ", path, ": it is ",
       S_ISDIR(status.st_mode) ? "a directory" : "neither a file nor a pipe");
}

InputFile::~InputFile() { close(descriptor_); }

std::string InputFile::read(size_t bytes) {
  std::string content;
  while (content.size() < bytes) {
    const size_t before = content.size();
    content.resize(before + std::min(kPiece, bytes - before));
    const ssize_t n = ::read(descriptor_, content.data() + before, content.size() - before);
    content.resize(before + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n < 0 && errno != EINTR) fail("cannot read ", path_, ": ", std::strerror(errno));
    if (n == 0) break;
  }
  return content;
}

std::string read_text(const std::string& path) {
  return whole(InputFile(path).read(kMostText + 1), path);
}

std::string read_text(std::istream& in, const std::string& name) {
  std::string text;
  for (size_t before = 0; in && text.size() <= kMostText; before = text.size()) {
    text.resize(before + kPiece);
    in.read(text.data() + before, kPiece);
    text.resize(before + static_cast<size_t>(in.gcount()));
  }
  return whole(std::move(text), name);
}

}  // namespace tiny_compile

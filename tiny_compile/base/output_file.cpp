// What does a reader find when the writer died half-way? The old file: the new one is written beside
// it and takes its name when all of it is on the disk.
//
//   write_whole("model.npz", bytes)   =>   model.npz.4711-0.tmp, complete   =>   model.npz
//
// Invariant: the name leads to a complete file at every moment. Which needs two fsyncs: of the bytes
// before the name moves, or else a crash could keep the name and lose the bytes, and of the folder.
#include "tiny_compile/base/output_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "tiny_compile/base/error.h"

namespace tiny_compile {
namespace {

constexpr size_t kPiece = size_t{1} << 30;  // Linux takes a little less than 2 GiB at once

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  fail("cannot write ", path, ": ", why);
}

// A file at the process's limit (ulimit -f) is an error of write(), not the end of the process.
class NoSignalAtTheLimit {
 public:
  NoSignalAtTheLimit() {
    sigemptyset(&limit_);
    sigaddset(&limit_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &limit_, &before_);
  }
  ~NoSignalAtTheLimit() {
    const timespec now = {0, 0};
    if (!sigismember(&before_, SIGXFSZ)) sigtimedwait(&limit_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSignalAtTheLimit(const NoSignalAtTheLimit&) = delete;
  NoSignalAtTheLimit& operator=(const NoSignalAtTheLimit&) = delete;

 private:
  sigset_t limit_, before_;
};

class OutputFile {
 public:
  OutputFile(const std::string& path, int flags, mode_t mode)
      : path_(path), descriptor_(open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, mode)) {
    if (descriptor_ < 0) refuse(path_, std::strerror(errno));
  }
  ~OutputFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kPiece));
      if (n < 0 && errno != EINTR) refuse(path_, std::strerror(errno));
      bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(n, 0)));
    }
  }
  void permit(mode_t mode) const {  // what a file system cannot say it need not
    if (fchmod(descriptor_, mode) != 0 && errno != EPERM && errno != ENOTSUP)
      refuse(path_, std::strerror(errno));
  }
  void finish(bool synced) {
    const bool lost = synced && fsync(descriptor_) != 0;
    const int error = errno;
    const bool failed = close(descriptor_) != 0;
    descriptor_ = -1;
    if (lost || failed) refuse(path_, std::strerror(lost ? error : errno));
  }

 private:
  std::string path_;
  int descriptor_;
};

void write_pieces(OutputFile& file, const std::vector<std::string_view>& pieces, bool synced) {
  const NoSignalAtTheLimit guard;
  for (const std::string_view piece : pieces) file.write(piece);
  file.finish(synced);
}

// A file system that cannot sync a folder has no more to give.
void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

// Writes the pieces into a new file beside `path` and gives it that name.
void replace_file(const std::string& path, const struct stat* old,
                  const std::vector<std::string_view>& pieces) {
  static std::atomic<int> count = 0;
  const std::string made = str(path, ".", getpid(), "-", count++, ".tmp");
  unlink(made.c_str());  // of an earlier process of this number
  try {
    OutputFile file(made, O_CREAT | O_EXCL, 0666);
    if (old) file.permit(old->st_mode & 07777);
    write_pieces(file, pieces, true);
    if (rename(made.c_str(), path.c_str()) != 0) refuse(path, std::strerror(errno));
  } catch (const Error& error) {
    unlink(made.c_str());
    fail(error.what(), old ? "; " + path + " is as it was" : "",
         "; make room or choose another place");
  }
  sync_folder(std::filesystem::path(path).parent_path());
}

}  // namespace

void write_whole(const std::string& path, const std::vector<std::string_view>& pieces) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) return replace_file(path, nullptr, pieces);
  if (!S_ISREG(status.st_mode)) {
    OutputFile file(path, 0, 0);
    return write_pieces(file, pieces, false);
  }
  std::error_code unknown;  // a link stays one: what it leads to is replaced
  const std::string target = std::filesystem::canonical(path, unknown).string();
  replace_file(unknown ? path : target, &status, pieces);
}

}  // namespace tiny_compile

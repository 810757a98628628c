// How can a second process skip the compiler and never run the wrong code? An entry's name is
// the hash of everything that made it; its last 40 bytes are a mark, the length and a hash of
// the rest, so that a torn, damaged or foreign file is seen before it is loaded. Entries appear
// by rename.
#include "tiny_compile/runtime/disk_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <string_view>
#include <tuple>

#include "tiny_compile/base/error.h"
#include "tiny_compile/runtime/descriptor.h"
#include "tiny_compile/runtime/log.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 30;
constexpr size_t kMostEntries = 2048;  // listing them takes 2 ms of a compile

struct Hash {
  uint64_t a = 0x9e3779b97f4a7c15ull, b = 0xc2b2ae3d27d4eb4full;
};

uint64_t mixed(uint64_t h) {
  h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93ull;
  return h ^ (h >> 29);
}

// Two streams of 64-bit words, each multiplied and rotated by its own constants.
Hash hash_bytes(Hash hash, const char* data, size_t size) {
  auto word = [&](uint64_t w) {
    hash.a = mixed(hash.a ^ w) * 0x9fb21c651e98df25ull;
    hash.b = (((hash.b << 23) | (hash.b >> 41)) + w) * 0xa0761d6478bd642full;
    hash.b ^= hash.b >> 32;
  };
  size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    uint64_t w;
    std::memcpy(&w, data + i, 8);
    word(w);
  }
  uint64_t last = 0;
  std::memcpy(&last, data + i, size - i);
  word(last);
  word(size);
  return hash;
}

struct Trailer {
  char mark[16] = {'t', 'i', 'n', 'y', '_', 'c', 'o', 'm',
                   'p', 'i', 'l', 'e', ' ', 'v', '1', '\n'};
  uint64_t length = 0;
  Hash hash;
};

bool is_private(const struct stat& status) {
  return status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Makes a directory and those above it; 0, or the errno of the last that could not be made.
int make_directories(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1))
    mkdir(path.substr(0, slash).c_str(), 0700);
  return mkdir(path.c_str(), 0700) == 0 || errno == EEXIST ? 0 : errno;
}

std::string wanted_directory() {
  const char* chosen = std::getenv("TC_CACHE_DIR");
  if (chosen && *chosen) return chosen;
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg && *xdg == '/') return std::string(xdg) + "/tiny_compile";
  const char* home = std::getenv("HOME");
  return home && *home ? std::string(home) + "/.cache/tiny_compile" : "";
}

bool append_trailer(const std::string& path, const std::string& key) {
  const std::string content = read_file(path);
  if (content.empty()) return false;
  Trailer trailer;
  trailer.length = content.size();
  trailer.hash =
      hash_bytes(hash_bytes({}, key.data(), key.size()), content.data(), content.size());
  Descriptor file(open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  return file && write(file.get(), &trailer, sizeof trailer) == sizeof trailer && file.close();
}

struct Entry {
  std::string name;
  int64_t bytes;
  timespec used;
};

bool is_entry(std::string_view name) {
  return name.size() == 35 && name.substr(32) == ".so" &&
         name.find_first_not_of("0123456789abcdef") == 32;
}

bool is_temporary(std::string_view name) { return name.substr(0, 7) == "tmp-tc-"; }

using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;

void remove_flat(const std::string& path) {
  const Directory directory(opendir(path.c_str()), closedir);
  while (const dirent* item = directory ? readdir(directory.get()) : nullptr)
    unlinkat(dirfd(directory.get()), item->d_name, 0);
  rmdir(path.c_str());
}

// Our entries, the last used first. What killed processes left an hour ago is removed.
std::vector<Entry> list_entries(const std::string& path) {
  std::vector<Entry> entries;
  const Directory directory(opendir(path.c_str()), closedir);
  while (const dirent* item = directory ? readdir(directory.get()) : nullptr) {
    const std::string name = item->d_name;
    struct stat status;
    if (!is_entry(name) && !is_temporary(name)) continue;
    if (fstatat(dirfd(directory.get()), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (is_entry(name)) entries.push_back({name, status.st_size, status.st_mtim});
    if (is_temporary(name) && S_ISDIR(status.st_mode) && time(nullptr) - status.st_mtime > 3600)
      remove_flat(str(path, "/", name));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(b.used.tv_sec, b.used.tv_nsec, a.name) <
           std::tie(a.used.tv_sec, a.used.tv_nsec, b.name);
  });
  return entries;
}

int64_t most_bytes() {
  const char* chosen = std::getenv("TC_CACHE_BYTES");
  if (!chosen || !*chosen) return kMostBytes;
  char* end = nullptr;
  const long long bytes = std::strtoll(chosen, &end, 10);
  if (*end == 0 && bytes >= 0) return bytes;
  log("cache", str("TC_CACHE_BYTES='", chosen, "' is no number of bytes: ", kMostBytes));
  return kMostBytes;
}

void evict(const std::string& directory) {
  const int64_t most = most_bytes();
  int64_t bytes = 0;
  size_t count = 0;
  for (const Entry& entry : list_entries(directory)) {
    bytes += entry.bytes;
    if (bytes <= most && ++count <= kMostEntries) continue;
    unlink((directory + "/" + entry.name).c_str());
    log("cache", str("evicted ", entry.name));
  }
}

}  // namespace

std::string content_key(const std::vector<std::pair<std::string, std::string>>& parts) {
  Hash hash;
  for (const auto& [name, text] : parts) {
    hash = hash_bytes(hash, name.data(), name.size());
    hash = hash_bytes(hash, text.data(), text.size());
  }
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx",
                static_cast<unsigned long long>(mixed(hash.a)),
                static_cast<unsigned long long>(mixed(hash.b)));
  return text;
}

std::string cache_directory() {
  const std::string path = wanted_directory();
  if (path.empty()) return "";
  struct stat status;
  if (stat(path.c_str(), &status) != 0) {
    const int error = make_directories(path);
    if (stat(path.c_str(), &status) != 0) {
      log("cache", str("no cache: cannot make ", path, ": ", std::strerror(error)));
      return "";
    }
  }
  if (!S_ISDIR(status.st_mode) || !is_private(status) ||
      faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) {
    log("cache", str("no cache: ", path,
                     " is no directory that this user, and nobody else, can write to; set "
                     "TC_CACHE_DIR"));
    return "";
  }
  return path;
}

std::optional<std::string> find_cached(const std::string& directory, const std::string& key) {
  if (directory.empty()) return std::nullopt;
  const std::string path = directory + "/" + key + ".so";
  struct stat status;
  if (lstat(path.c_str(), &status) != 0) return std::nullopt;
  const std::string content =
      S_ISREG(status.st_mode) && is_private(status) ? read_file(path) : "";
  Trailer found, right;
  if (content.size() > sizeof found) {
    std::memcpy(&found, content.data() + content.size() - sizeof found, sizeof found);
    right.length = content.size() - sizeof found;
    right.hash =
        hash_bytes(hash_bytes({}, key.data(), key.size()), content.data(), right.length);
    if (std::memcmp(&found, &right, sizeof found) == 0) {
      utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // eviction takes the least recently used
      return path;
    }
  }
  log("cache", str("entry ", path, " is damaged or not ours: removed"));
  unlink(path.c_str());
  return std::nullopt;
}

bool store_cached(const std::string& directory, const std::string& key,
                  const std::string& path) {
  if (directory.empty() || !append_trailer(path, key)) return false;
  const std::string entry = directory + "/" + key + ".so";
  if (chmod(path.c_str(), 0700) != 0 || rename(path.c_str(), entry.c_str()) != 0) return false;
  evict(directory);
  return true;
}

bool store_text(const std::string& directory, const std::string& key, const std::string& text) {
  const TemporaryDirectory temporary(directory);
  if (temporary.path().empty()) return false;
  const std::string path = temporary.path() + "/content";
  std::ofstream out(path, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  return out && store_cached(directory, key, path);
}

TemporaryDirectory::TemporaryDirectory(const std::string& place)
    : path_(place + "/tmp-tc-XXXXXX") {
  if (place.empty() || !mkdtemp(path_.data())) path_.clear();
}

TemporaryDirectory::~TemporaryDirectory() {
  if (!path_.empty()) remove_flat(path_);
}

std::string read_file(const std::string& path) {
  std::string content;
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status;
  if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return content;
  content.resize(static_cast<size_t>(status.st_size));
  const ssize_t n = read(file.get(), content.data(), content.size());
  content.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  return content;
}

}  // namespace tiny_compile

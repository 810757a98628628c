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
#include <fstream>
#include <sstream>

#include "tiny_compile/base/error.h"
#include "tiny_compile/runtime/log.h"

namespace tiny_compile {
namespace {

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

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  return in ? content.str() : "";
}

bool is_private(const struct stat& status) {
  return status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool make_directories(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1))
    mkdir(path.substr(0, slash).c_str(), 0700);
  mkdir(path.c_str(), 0700);
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::string wanted_directory() {
  const char* chosen = std::getenv("TC_CACHE_DIR");
  if (chosen && *chosen) return chosen;
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg && *xdg) return std::string(xdg) + "/tiny_compile";
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
  std::ofstream out(path, std::ios::binary | std::ios::app);
  out.write(reinterpret_cast<const char*>(&trailer), sizeof trailer);
  out.close();
  return !out.fail();
}

struct Entry {
  std::string path;
  int64_t bytes;
  int64_t modified;
};

std::vector<Entry> entries(const std::string& directory) {
  std::vector<Entry> result;
  DIR* dir = opendir(directory.c_str());
  if (!dir) return result;
  while (const dirent* item = readdir(dir)) {
    const std::string path = directory + "/" + item->d_name;
    struct stat status;
    if (lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode))
      result.push_back({path, status.st_size, status.st_mtime});
  }
  closedir(dir);
  return result;
}

// The oldest entries beyond the bound go, and what killed processes left an hour ago.
void evict(const std::string& directory) {
  const char* bound = std::getenv("TC_CACHE_BYTES");
  const int64_t most = bound ? std::atoll(bound) : int64_t{1} << 30;
  std::vector<Entry> all = entries(directory);
  std::sort(all.begin(), all.end(),
            [](const Entry& a, const Entry& b) { return a.modified > b.modified; });
  int64_t total = 0;
  const int64_t now = time(nullptr);
  for (const Entry& entry : all) {
    const bool abandoned =
        entry.path.find("/tmp-") != std::string::npos && now - entry.modified > 3600;
    total += entry.bytes;
    if (total > most || abandoned) unlink(entry.path.c_str());
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
  if (stat(path.c_str(), &status) != 0 &&
      (!make_directories(path) || stat(path.c_str(), &status) != 0)) {
    log("cache", str("no cache: cannot make ", path, ": ", std::strerror(errno)));
    return "";
  }
  if (!S_ISDIR(status.st_mode) || !is_private(status) || access(path.c_str(), W_OK) != 0) {
    log("cache", str("no cache: ", path, " is no directory that only this user can write to"));
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
    if (std::memcmp(&found, &right, sizeof found) == 0) return path;
  }
  log("cache", str("entry ", path, " is damaged or not ours: removed"));
  unlink(path.c_str());
  return std::nullopt;
}

std::string store_cached(const std::string& directory, const std::string& key,
                         const std::string& path) {
  if (directory.empty() || !append_trailer(path, key)) return path;
  const std::string entry = directory + "/" + key + ".so";
  chmod(path.c_str(), 0700);
  if (rename(path.c_str(), entry.c_str()) != 0) return path;
  evict(directory);
  return entry;
}

std::string temporary_file(const std::string& directory) {
  for (const std::string& place : {directory, std::string("/dev/shm"), std::string("/tmp")}) {
    if (place.empty()) continue;
    std::string path = place + "/tmp-tc-XXXXXX";
    const int fd = mkstemp(path.data());
    if (fd < 0) continue;
    close(fd);
    return path;
  }
  fail(
      "no place for a compiled kernel: neither the cache directory nor /tmp can be written to; "
      "set TC_CACHE_DIR");
}

}  // namespace tiny_compile

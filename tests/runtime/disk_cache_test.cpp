#include "tiny_compile/runtime/disk_cache.h"

#include <sys/resource.h>

#include <set>
#include <vector>

#include "tests/catch.h"
#include "tests/runtime/scratch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::string kContent = "the content of an entry, longer than its trailer is";

std::string key_of(int i) { return content_key({{"number", std::to_string(i)}}); }

struct Cache {
  Cache() { mkdir(directory.c_str(), 0700); }

  bool store(const std::string& key, const std::string& content) const {
    write_text(scratch.path("new"), content);
    return store_cached(directory, key, scratch.path("new"));
  }
  std::string entry(const std::string& key) const { return directory + "/" + key + ".so"; }
  bool has(const std::string& key) const { return find_cached(directory, key).has_value(); }
  // Whether an entry whose file was replaced by these bytes is still given out.
  bool accepts(const std::string& bytes) const {
    write_text(entry(key_of(1)), bytes);
    chmod(entry(key_of(1)).c_str(), 0700);
    return has(key_of(1));
  }
  void set_age(const std::string& name, int seconds) const {
    const timespec then{time(nullptr) - seconds, 0}, times[2] = {then, then};
    utimensat(AT_FDCWD, (directory + "/" + name).c_str(), times, 0);
  }

  Scratch scratch;
  std::string directory = scratch.path("cache");
  Setting unbounded{"TC_CACHE_BYTES", nullptr};
};

}  // namespace

TEST_CASE("a key has 128 bits, and every part and boundary counts", "[disk_cache]") {
  const std::vector<std::vector<std::pair<std::string, std::string>>> lists = {
      {},
      {{"a", ""}},
      {{"", "a"}},
      {{"a", "bc"}},
      {{"ab", "c"}},
      {{"a", "b"}},
      {{"b", "a"}},
      {{"a", "b"}, {"c", ""}},
      {{"a", std::string(8, '\0')}},
      {{"a", std::string(16, '\0')}}};
  std::set<std::string> keys;
  for (const auto& parts : lists) {
    CHECK(content_key(parts).size() == 32);
    CHECK(content_key(parts) == content_key(parts));
    keys.insert(content_key(parts));
  }
  CHECK(keys.size() == lists.size());
}

TEST_CASE("a hundred thousand keys differ in both halves", "[disk_cache]") {
  std::set<std::string> first, second;
  for (int i = 0; i < 100000; i++) {
    const std::string key = key_of(i);
    first.insert(key.substr(0, 16));
    second.insert(key.substr(16));
  }
  CHECK(first.size() == 100000);
  CHECK(second.size() == 100000);
}

TEST_CASE("the directory is TC_CACHE_DIR, else XDG's, else the home's", "[disk_cache]") {
  const Scratch scratch;
  const Setting home("HOME", scratch.path("home"));
  const Setting none("TC_CACHE_DIR", nullptr);
  {
    const Setting xdg("XDG_CACHE_HOME", scratch.path("xdg"));
    CHECK(cache_directory() == scratch.path("xdg/tiny_compile"));
    const Setting chosen("TC_CACHE_DIR", scratch.path("a 'quoted' \"place\""));
    CHECK(cache_directory() == scratch.path("a 'quoted' \"place\""));
  }
  const Setting relative("XDG_CACHE_HOME", "not/absolute");  // the standard says: ignore it
  CHECK(cache_directory() == scratch.path("home/.cache/tiny_compile"));
  const Setting unset("HOME", nullptr);
  CHECK(cache_directory().empty());
}

TEST_CASE("a directory that is made is the user's alone", "[disk_cache]") {
  const Scratch scratch;
  const Setting chosen("TC_CACHE_DIR", scratch.path("a/b/c"));
  const mode_t before = umask(0);
  REQUIRE(cache_directory() == scratch.path("a/b/c"));
  umask(before);
  struct stat status;
  REQUIRE(stat(scratch.path("a/b/c").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
}

TEST_CASE("a place that others can write to is no cache", "[disk_cache]") {
  const Scratch scratch;
  const std::string place = scratch.path("place");
  const Setting chosen("TC_CACHE_DIR", place);
  SECTION("world-writable") {
    mkdir(place.c_str(), 0700);
    chmod(place.c_str(), 0777);
    CHECK(cache_directory().empty());
    chmod(place.c_str(), 0755);
    CHECK(cache_directory() == place);
  }
  SECTION("somebody else's") {
    mkdir(place.c_str(), 0700);
    if (chown(place.c_str(), 12345, 12345) != 0) SKIP("only root gives files away");
    CHECK(cache_directory().empty());
  }
}

TEST_CASE("a place that cannot be a directory is no cache", "[disk_cache]") {
  const Scratch scratch;
  write_text(scratch.path("file"), "in the way");
  for (const std::string& place :
       {scratch.path("file"), scratch.path("file/below"), std::string("/proc/tiny_compile")}) {
    const Setting chosen("TC_CACHE_DIR", place);
    CHECK(cache_directory().empty());
  }
  CHECK(text_of(scratch.path("file")) == "in the way");
}

TEST_CASE("a directory without leave to write is no cache", "[disk_cache]") {
  if (geteuid() == 0) {
    const Scratch scratch;
    mkdir(scratch.path("place").c_str(), 0500);
    REQUIRE(chown(scratch.path("place").c_str(), 12345, 12345) == 0);
    chmod(scratch.path("").c_str(), 0755);
    const Setting chosen("TC_CACHE_DIR", scratch.path("place"));
    CHECK(in_child([] { return seteuid(12345) == 0 && cache_directory().empty() ? 0 : 1; }) ==
          0);
    return;
  }
  const Scratch scratch;
  mkdir(scratch.path("place").c_str(), 0500);
  const Setting chosen("TC_CACHE_DIR", scratch.path("place"));
  CHECK(cache_directory().empty());
}

TEST_CASE("a link to a directory is followed, one to nowhere is no cache", "[disk_cache]") {
  const Scratch scratch;
  mkdir(scratch.path("real").c_str(), 0700);
  REQUIRE(symlink("real", scratch.path("link").c_str()) == 0);
  REQUIRE(symlink("absent", scratch.path("broken").c_str()) == 0);
  const Setting good("TC_CACHE_DIR", scratch.path("link"));
  CHECK(cache_directory() == scratch.path("link"));
  const Setting bad("TC_CACHE_DIR", scratch.path("broken"));
  CHECK(cache_directory().empty());
}

TEST_CASE("what was stored is found under its key alone", "[disk_cache]") {
  const Cache cache;
  REQUIRE(cache.store(key_of(1), kContent));
  REQUIRE(cache.has(key_of(1)));
  CHECK(text_of(*find_cached(cache.directory, key_of(1))).substr(0, kContent.size()) ==
        kContent);
  CHECK_FALSE(cache.has(key_of(2)));
  CHECK(count_in(cache.directory) == 1);
  struct stat status;
  REQUIRE(stat(cache.entry(key_of(1)).c_str(), &status) == 0);
  CHECK((status.st_mode & 0077) == 0);
}

TEST_CASE("no damage to an entry goes unseen, and a damaged one is removed", "[disk_cache]") {
  const Cache cache;
  REQUIRE(cache.store(key_of(1), kContent));
  const std::string whole = text_of(cache.entry(key_of(1)));
  REQUIRE(cache.accepts(whole));
  for (size_t at = 0; at < whole.size(); at++) {
    for (int bit : {0, 7}) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      INFO("byte " << at << " bit " << bit);
      CHECK_FALSE(cache.accepts(flipped));
    }
    CHECK_FALSE(cache.accepts(whole.substr(0, at)));
    CHECK_FALSE(cache.accepts(whole.substr(at + 1)));
  }
  CHECK_FALSE(cache.accepts(whole + "x"));
  CHECK(count_in(cache.directory) == 0);
}

TEST_CASE("an entry under another's name is not taken for it", "[disk_cache]") {
  const Cache cache;
  REQUIRE(cache.store(key_of(1), kContent));
  REQUIRE(rename(cache.entry(key_of(1)).c_str(), cache.entry(key_of(2)).c_str()) == 0);
  CHECK_FALSE(cache.has(key_of(2)));
}

TEST_CASE("what others may have written is not given out", "[disk_cache]") {
  const Cache cache;
  REQUIRE(cache.store(key_of(1), kContent));
  const std::string entry = cache.entry(key_of(1));
  SECTION("a world-writable entry") {
    chmod(entry.c_str(), 0777);
    CHECK_FALSE(cache.has(key_of(1)));
  }
  SECTION("somebody else's entry") {
    if (chown(entry.c_str(), 12345, 12345) != 0) SKIP("only root gives files away");
    CHECK_FALSE(cache.has(key_of(1)));
  }
  SECTION("a link") {
    REQUIRE(rename(entry.c_str(), cache.scratch.path("elsewhere").c_str()) == 0);
    REQUIRE(symlink(cache.scratch.path("elsewhere").c_str(), entry.c_str()) == 0);
    CHECK_FALSE(cache.has(key_of(1)));
    CHECK(!text_of(cache.scratch.path("elsewhere")).empty());
  }
}

TEST_CASE("a pipe or a directory in an entry's place harms nobody", "[disk_cache]") {
  const Cache cache;
  SECTION("a pipe") { REQUIRE(mkfifo(cache.entry(key_of(1)).c_str(), 0600) == 0); }
  SECTION("a directory") { REQUIRE(mkdir(cache.entry(key_of(1)).c_str(), 0700) == 0); }
  CHECK_FALSE(cache.has(key_of(1)));
  const bool stored = cache.store(key_of(1), kContent);
  CHECK(cache.has(key_of(1)) == stored);
}

TEST_CASE("the entries used least recently go beyond the bound", "[disk_cache]") {
  const Cache cache;
  for (int i = 0; i < 10; i++) {
    REQUIRE(cache.store(key_of(i), std::string(1000, 'x')));
    cache.set_age(key_of(i) + ".so", 100 - i);
  }
  CHECK(cache.has(key_of(0)));  // used: now the youngest
  const Setting bound("TC_CACHE_BYTES", "4500");
  REQUIRE(cache.store(key_of(10), std::string(1000, 'x')));
  std::set<int> left;
  for (int i = 0; i <= 10; i++) {
    if (cache.has(key_of(i))) left.insert(i);
  }
  CHECK(left == std::set<int>{0, 8, 9, 10});
}

TEST_CASE("a bound that is no number is not taken for zero", "[disk_cache]") {
  const Cache cache;
  for (const char* bound : {"", "much", "-1", "1G"}) {
    const Setting setting("TC_CACHE_BYTES", bound);
    CHECK(cache.store(key_of(1), kContent));
    CHECK(cache.has(key_of(1)));
  }
  const Setting none("TC_CACHE_BYTES", "0");
  CHECK(cache.store(key_of(1), kContent));
  CHECK_FALSE(cache.has(key_of(1)));
}

TEST_CASE("files that are not ours stay, whatever the bound", "[disk_cache]") {
  const Cache cache;
  const Setting bound("TC_CACHE_BYTES", "1");
  mkdir((cache.directory + "/photos").c_str(), 0700);
  for (const char* name : {"thesis.txt", "library.so", "tmp-notes", "photos/one.jpg"}) {
    write_text(cache.directory + "/" + name, std::string(5000, 'x'));
    cache.set_age(name, 100000);
  }
  REQUIRE(cache.store(key_of(1), kContent));
  CHECK(count_in(cache.directory) == 4);
  CHECK(count_in(cache.directory + "/photos") == 1);
}

TEST_CASE("a temporary directory goes with its files; an abandoned one goes in an hour",
          "[disk_cache]") {
  const Cache cache;
  {
    const TemporaryDirectory temporary(cache.directory);
    REQUIRE_FALSE(temporary.path().empty());
    write_text(temporary.path() + "/kernels.so", "x");
  }
  CHECK(count_in(cache.directory) == 0);
  for (const char* name : {"tmp-tc-recent", "tmp-tc-old"}) {
    mkdir((cache.directory + "/" + name).c_str(), 0700);
    write_text(cache.directory + "/" + name + "/kernels.so", "x");
  }
  cache.set_age("tmp-tc-old", 4000);
  REQUIRE(cache.store(key_of(1), kContent));
  CHECK(count_in(cache.directory) == 2);
  CHECK(std::filesystem::exists(cache.directory + "/tmp-tc-recent"));
  CHECK(TemporaryDirectory("/proc").path().empty());
  CHECK(TemporaryDirectory("").path().empty());
}

TEST_CASE("a disk full while an entry is stored leaves no entry", "[disk_cache]") {
  const Cache cache;
  const int code = in_child([&] {
    if (!mount_small(cache.directory, "size=16k,mode=700")) return kNotAllowed;
    const std::string file = cache.directory + "/new";
    write_text(file, std::string(20000, 'x'));
    std::ofstream(file, std::ios::app) << std::string(20000, 'x');
    if (store_cached(cache.directory, key_of(1), file)) return 1;
    return cache.has(key_of(1)) ? 2 : 0;
  });
  if (code == kNotAllowed) SKIP("this user may not mount");
  CHECK(code == 0);
}

TEST_CASE("a limit on file sizes while an entry is stored leaves no entry", "[disk_cache]") {
  const Cache cache;
  CHECK(in_child([&] {
          signal(SIGXFSZ, SIG_IGN);
          write_text(cache.scratch.path("new"), std::string(1000, 'x'));
          const rlimit limit{1010, 1010};
          setrlimit(RLIMIT_FSIZE, &limit);
          if (store_cached(cache.directory, key_of(1), cache.scratch.path("new"))) return 1;
          return cache.has(key_of(1)) ? 2 : 0;
        }) == 0);
}

TEST_CASE("processes that store, find and evict at once get whole entries", "[disk_cache]") {
  const Cache cache;
  const Setting bound("TC_CACHE_BYTES", "9000");
  std::vector<Child> children;
  for (int p = 0; p < 8; p++) {
    children.emplace_back([&, p] {
      const std::string file = cache.scratch.path("new" + std::to_string(p));
      for (int i = 0; i < 40; i++) {
        const int k = (i * 7 + p) % 12;
        const std::string content(1000, static_cast<char>('a' + k));
        write_text(file, content);
        store_cached(cache.directory, key_of(k), file);
        const auto found = find_cached(cache.directory, key_of(k));
        const std::string read = found ? text_of(*found) : "";
        if (!read.empty() && read.substr(0, 1000) != content) return 1;
      }
      return 0;
    });
  }
  for (const Child& child : children) CHECK(child.wait() == 0);
}

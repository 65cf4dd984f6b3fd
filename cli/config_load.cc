#include "cli/config_load.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <toml++/toml.h>
#include <unistd.h>

#include "cli/config_keys.h"

namespace cli {
namespace {

using Values = std::vector<std::string>;

constexpr std::string_view kPrefix = "IGGY_REPLICATE_";

struct Given {
  Values values;
  std::string source;  // "file", "environment", "flag"
};

std::optional<std::string> scalar(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  return std::nullopt;
}

class Loader {
 public:
  LoadedConfig load(const ConfigSources& sources) {
    if (sources.file) read_toml(*sources.file);
    read_environment(sources.environment);
    for (const auto& [key, values] : sources.flags) given_[key] = {values, "flag"};
    read_url_file("link.upstream_url");
    read_url_file("link.downstream_url");
    for (const ConfigKey& key : config_keys()) apply(key);
    for (const std::string& problem : replicator::validate(out_.config)) {
      // What could not be read at all was said already.
      if (!refused_.contains(problem.substr(0, problem.find(':')))) out_.problems.push_back(problem);
    }
    for (const ConfigKey& key : config_keys()) out_.settings.push_back(setting(key));
    return std::move(out_);
  }

 private:
  void refuse(const std::string& key, std::string_view sentence) {
    refused_.insert(key);
    out_.problems.push_back(fmt::format("{}: {}", key, sentence));
  }

  void read_toml(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) {
      out_.problems.push_back(fmt::format("{}: can't be read", path));
      return;
    }
    try {
      const toml::table document = toml::parse(text.str());
      for (const auto& [section, node] : document) {
        if (const auto* table = node.as_table()) {
          for (const auto& [name, value] : *table)
            read_node(path, fmt::format("{}.{}", section.str(), name.str()), value);
        } else {
          read_node(path, std::string(section.str()), node);
        }
      }
    } catch (const toml::parse_error& error) {
      out_.problems.push_back(fmt::format("{}:{}: not TOML: {}", path, error.source().begin.line, error.description()));
    }
  }

  void read_node(const std::string& path, const std::string& name, const toml::node& node) {
    const ConfigKey* const key = find_config_key(name);
    if (key == nullptr) {
      out_.problems.push_back(fmt::format("{}: unknown key ({}:{})", name, path, node.source().begin.line));
      return;
    }
    Values values;
    bool is_readable = true;
    if (const auto* array = node.as_array(); array != nullptr && key->is_list) {
      for (const toml::node& element : *array) {
        const auto value = scalar(element);
        if (value) values.push_back(*value);
        if (!value) is_readable = false;
      }
    } else if (const auto value = scalar(node); value && !key->is_list) {
      values.push_back(*value);
    } else {
      is_readable = false;
    }
    if (!is_readable) {
      refuse(name, fmt::format("is not {} ({}:{})", key->is_list ? "a list of strings" : "a string, number or boolean",
                               path, node.source().begin.line));
      return;
    }
    given_[name] = {std::move(values), "file"};
  }

  void read_environment(const std::map<std::string, std::string>& environment) {
    std::map<std::string, const ConfigKey*> by_variable;
    for (const ConfigKey& key : config_keys()) by_variable.emplace(key.variable(), &key);
    for (const auto& [name, value] : environment) {
      if (!name.starts_with(kPrefix) || is_command_line_variable(name)) continue;
      const auto found = by_variable.find(name);
      if (found == by_variable.end()) {
        out_.problems.push_back(fmt::format("{}: unknown variable", name));
        continue;
      }
      given_[found->second->key] = {found->second->is_list ? split(value) : Values{value}, "environment"};
    }
  }

  static Values split(const std::string& text) {
    Values values;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
      part.erase(0, std::min(part.find_first_not_of(' '), part.size()));
      while (part.ends_with(' ')) part.pop_back();
      if (!part.empty()) values.push_back(part);
    }
    return values;
  }

  // The URL itself and the file that holds it are one setting: the one from the stronger source counts.
  void read_url_file(const std::string& url_key) {
    const std::string file_key = url_key + "_file";
    const auto file = given_.find(file_key);
    if (file == given_.end() || file->second.values.front().empty()) return;
    const auto url = given_.find(url_key);
    if (url != given_.end() && !url->second.values.front().empty()) {
      if (url->second.source == file->second.source) {
        refuse(file_key, fmt::format("is given beside {}; give one of them", url_key));
        return;
      }
      if (strength(url->second.source) > strength(file->second.source)) return;
    }
    std::ifstream stream(file->second.values.front());
    std::string line;
    std::getline(stream, line);
    while (line.ends_with('\r') || line.ends_with(' ')) line.pop_back();
    if (line.empty()) {
      refuse(file_key, fmt::format("{} can't be read, or its first line is empty", file->second.values.front()));
      refused_.insert(url_key);
      return;
    }
    given_[url_key] = {{line}, file->second.source};
  }

  static int strength(std::string_view source) { return source == "flag" ? 3 : source == "environment" ? 2 : 1; }

  void apply(const ConfigKey& key) {
    const auto found = given_.find(key.key);
    if (found == given_.end()) return;
    if (!key.is_list && found->second.values.size() != 1) {
      refuse(key.key, "takes one value");
      return;
    }
    if (auto problem = key.set(out_.config, found->second.values)) {
      refuse(key.key, fmt::format("{} (from {})", *problem, found->second.source));
    }
  }

  replicator::Setting setting(const ConfigKey& key) const {
    replicator::Setting setting{key.key, {}, {}, "default"};
    const auto found = given_.find(key.key);
    Values effective = key.get(out_.config);
    if (found != given_.end()) {
      setting.source = found->second.source;
      setting.set = fmt::format("{}", fmt::join(found->second.values, ", "));
      // The value of a file key is a path: in effect as written.
      if (key.key.ends_with("_url_file")) effective = found->second.values;
    }
    setting.effective = fmt::format("{}", fmt::join(effective, ", "));
    if (key.is_secret) {
      setting.set = hide(setting.set);
      setting.effective = hide(setting.effective);
    }
    return setting;
  }

  static std::string hide(const std::string& url) {
    if (url.empty()) return {};
    auto parsed = iggy::parse_connection_string(url);
    return parsed ? parsed->redacted() : "***";
  }

  LoadedConfig out_;
  std::map<std::string, Given> given_;
  std::set<std::string> refused_;
};

}  // namespace

LoadedConfig load_config(const ConfigSources& sources) { return Loader().load(sources); }

bool is_command_line_variable(std::string_view name) {
  constexpr std::array kOwn = {std::string_view("IGGY_REPLICATE_CONFIG"), std::string_view("IGGY_REPLICATE_ADMIN"),
                               std::string_view("IGGY_REPLICATE_ADMIN_CA")};
  return std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end();
}

std::map<std::string, std::string> process_environment() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

}  // namespace cli

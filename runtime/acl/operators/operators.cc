#include "runtime/acl/operators/operators.h"

#include "runtime/acl/process/device_context.h"

namespace npumesh {

Operators& Operators::Get() {
  static Operators* const operators = new Operators;
  return *operators;
}

std::shared_ptr<MadeOperator> Operators::Find(const AclDevice& device, const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find({&device, key});
  if (found == kept_.end()) return nullptr;
  ages_.splice(ages_.end(), ages_, found->second.age);
  return found->second.made;
}

void Operators::Keep(const AclDevice& device, const std::string& key,
                     std::shared_ptr<MadeOperator> made) {
  const std::lock_guard lock(mutex_);
  RegisterEnd();
  const auto [entry, added] = kept_.try_emplace({&device, key});
  if (!added) ages_.erase(entry->second.age);
  entry->second.made = std::move(made);
  entry->second.age = ages_.insert(ages_.end(), &entry->first);
  MakeRoom();
}

void Operators::EndWithProcess() {
  const std::lock_guard lock(mutex_);
  RegisterEnd();
}

// Sessions end without the mutex.
void Operators::RegisterEnd() {
  if (ends_with_process_) return;
  AtFinalize([this] {
    if (const Result<ModelMachine*> machine = ModelMachine::Get(); machine.ok()) {
      (*machine)->ForgetOperators();
    }
    std::map<Place, Entry> ending;
    const std::lock_guard lock(mutex_);
    ages_.clear();
    ending.swap(kept_);
    ends_with_process_ = false;
    has_model_dir_ = false;
  });
  ends_with_process_ = true;
}

void Operators::MakeRoom() {
  while (kept_.size() > most_) {
    const auto oldest = kept_.find(*ages_.front());
    ages_.pop_front();
    kept_.erase(oldest);
  }
}

void Operators::set_most(uint64_t most) {
  const std::lock_guard lock(mutex_);
  most_ = most;
  MakeRoom();
}

bool Operators::TakeModelDir() {
  const std::lock_guard lock(mutex_);
  RegisterEnd();
  return !std::exchange(has_model_dir_, true);
}

void Operators::ForgetModelDir() {
  const std::lock_guard lock(mutex_);
  has_model_dir_ = false;
}

}  // namespace npumesh

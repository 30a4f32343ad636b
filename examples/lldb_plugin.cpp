/*
 * lldb_plugin.cpp: an LLDB plug-in over libcdacq. It has the commands
 *     managed stack           the stack of the selected thread
 *     managed method IP...    the methods that own addresses
 * Memory, registers, threads and images come from lldb, whether it has a core, a process or a remote one. Build it
 * against an installed copy and the headers of lldb (Debian: liblldb-14-dev), and load it with `plugin load`:
 *     c++ -shared -fPIC lldb_plugin.cpp -I/usr/lib/llvm-14/include $(pkg-config --cflags --libs libcdacq) \
 *         -o libmanaged.so
 * A core of the kernel lacks the bytes of mapped files, whose paths lldb 14 does not know: use a core of createdump.
 */
#include <cdacq.h>
#include <lldb/API/LLDB.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace
{

struct close_target {
    void operator()(cdacq_target *target) const
    {
        cdacq_target_close(target);
    }
};

struct destroy_session {
    void operator()(cdacq_session *session) const
    {
        cdacq_session_destroy(session);
    }
};

/* One stop of a process. It is read again for each command, because the process may have run. */
class Process
{
  public:
    /* False, with a message in `result`, if there is no runtime to be read. */
    bool open(lldb::SBDebugger debugger, lldb::SBCommandReturnObject &result)
    {
        process_ = debugger.GetSelectedTarget().GetProcess();
        if (!process_.IsValid()) {
            result.SetError("there is no process");
            return false;
        }
        list_images();
        cdacq_memory memory{};
        memory.size = sizeof memory;
        memory.context = this;
        memory.read = read;
        memory.mappings = mappings_.data();
        memory.mapping_count = mappings_.size();
        cdacq_target *target = nullptr;
        cdacq_session *session = nullptr;
        cdacq_error error{};
        cdacq_options options{};
        options.size = sizeof options;
        options.find_file = find_file;
        if (cdacq_target_open_memory(&memory, &options, &target, &error) < 0) {
            result.SetError(error.message);
            return false;
        }
        target_.reset(target);
        if (cdacq_session_create(target, &session, &error) < 0) {
            result.SetError(error.message);
            return false;
        }
        session_.reset(session);
        return true;
    }

    cdacq_session *session()
    {
        return session_.get();
    }
    lldb::SBThread thread()
    {
        return process_.GetSelectedThread();
    }

  private:
    static size_t read(uint64_t address, void *buffer, size_t size, void *context)
    {
        lldb::SBError error;
        return static_cast<Process *>(context)->process_.ReadMemory(address, buffer, size, error);
    }

    /* A core may lack what is in a file: that at the path that the process used, if there is one. */
    static bool find_file(const cdacq_need *need, char *path, size_t size, void *)
    {
        return need->path && access(need->path, R_OK) == 0 && std::strlen(need->path) < size &&
               std::strcpy(path, need->path);
    }

    /* The segments of the images that lldb knows, each with the path of its file. */
    void list_images()
    {
        lldb::SBTarget target = process_.GetTarget();
        for (uint32_t i = 0; i < target.GetNumModules(); i++) {
            lldb::SBModule module = target.GetModuleAtIndex(i);
            char path[4096];
            if (!module.GetFileSpec().GetPath(path, sizeof path))
                continue;
            paths_.push_back(std::make_unique<std::string>(path));
            for (size_t k = 0; k < module.GetNumSections(); k++)
                add_segment(module.GetSectionAtIndex(k), target);
        }
    }

    void add_segment(lldb::SBSection segment, lldb::SBTarget target)
    {
        uint64_t begin = segment.GetLoadAddress(target), in_page = begin % 4096;
        const char *name = segment.GetName();
        if (begin == LLDB_INVALID_ADDRESS || !name || std::strncmp(name, "PT_LOAD", 7) != 0)
            return;
        cdacq_mapping mapping{};
        mapping.size = sizeof mapping;
        mapping.begin = begin - in_page;
        mapping.end = begin + segment.GetFileByteSize();
        mapping.file_offset = segment.GetFileOffset() - in_page;
        mapping.path = paths_.back()->c_str();
        mappings_.push_back(mapping);
    }

    lldb::SBProcess process_;
    std::vector<std::unique_ptr<std::string>> paths_;
    std::vector<cdacq_mapping> mappings_;
    std::unique_ptr<cdacq_target, close_target> target_; /* closed after the session, before what it points to */
    std::unique_ptr<cdacq_session, destroy_session> session_;
};

/* By their DWARF numbers; the library takes the machine from the runtime's image. */
cdacq_registers registers_of(lldb::SBThread thread)
{
    static const char *const x86_64[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
                                         "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip"};
    cdacq_registers registers{};
    registers.size = sizeof registers;
    lldb::SBFrame frame = thread.GetFrameAtIndex(0);
    const char *triple = thread.GetProcess().GetTarget().GetTriple();
    bool is_arm = triple && std::strncmp(triple, "aarch64", 7) == 0;
    for (unsigned i = 0; i < (is_arm ? 33u : 17u); i++) {
        std::string name = !is_arm ? x86_64[i] : i == 31 ? "sp" : i == 32 ? "pc" : "x" + std::to_string(i);
        lldb::SBValue value = frame.FindRegister(name.c_str());
        if (!value.IsValid())
            continue;
        registers.values[i] = value.GetValueAsUnsigned();
        registers.known |= UINT64_C(1) << i;
    }
    return registers;
}

/* Names and paths are data of the process, which may lack them: they must not control the terminal. */
std::string printable(const char *text)
{
    std::string shown = text ? text : "?";
    for (size_t i = 0; i < shown.size(); i++) {
        auto byte = static_cast<unsigned char>(shown[i]);
        auto next = static_cast<unsigned char>(i + 1 < shown.size() ? shown[i + 1] : 0);
        if (byte == 0xc2 && next >= 0x80 && next < 0xa0) /* a C1 control in UTF-8 */
            shown.replace(i, 2, "?");
        else if (byte < ' ' || byte == 0x7f)
            shown[i] = '?';
    }
    return shown;
}

void print_method(const cdacq_method &method, lldb::SBCommandReturnObject &result)
{
    if (method.answer == CDACQ_ANSWER_MANAGED) {
        result.Printf("%s +%#" PRIx64, printable(method.name ? method.name : method.error).c_str(), method.offset);
        if (method.file && method.line)
            result.Printf(" at %s:%" PRIu32, printable(method.file).c_str(), method.line);
    } else if (method.answer == CDACQ_ANSWER_STUB) {
        result.Printf("stub <%s>", cdacq_code_kind_text(method.kind));
    } else {
        result.Printf("%s", method.answer == CDACQ_ANSWER_ERROR ? printable(method.error).c_str() : "not managed");
    }
    result.Printf("\n");
}

int print_frame(const cdacq_frame *frame, void *context)
{
    auto &result = *static_cast<lldb::SBCommandReturnObject *>(context);
    result.Printf("#%-3u%s %#" PRIx64 " ", frame->index, frame->by == CDACQ_FRAME_BY_GUESS ? "?" : "", frame->pc);
    const char *slash = frame->module ? std::strrchr(frame->module, '/') : nullptr;
    if (frame->method)
        print_method(*frame->method, result);
    else if (frame->symbol)
        result.Printf("%s +%#" PRIx64 "\n", printable(frame->symbol).c_str(), frame->symbol_offset);
    else
        result.Printf("%s+%#" PRIx64 "\n", printable(slash ? slash + 1 : "-").c_str(), frame->module_offset);
    return 0;
}

class Stack : public lldb::SBCommandPluginInterface
{
    bool DoExecute(lldb::SBDebugger debugger, char **, lldb::SBCommandReturnObject &result) override
    {
        Process process;
        if (!process.open(debugger, result))
            return false;
        cdacq_error error{};
        cdacq_registers registers = registers_of(process.thread());
        if (cdacq_session_visit_frames(process.session(), nullptr, &registers, 0, print_frame, &result, &error) < 0)
            result.Printf("... %s\n", error.message);
        result.SetStatus(lldb::eReturnStatusSuccessFinishResult);
        return true;
    }
};

class Method : public lldb::SBCommandPluginInterface
{
    bool DoExecute(lldb::SBDebugger debugger, char **arguments, lldb::SBCommandReturnObject &result) override
    {
        Process process;
        if (!process.open(debugger, result))
            return false;
        for (; arguments && *arguments; arguments++) {
            cdacq_error error{};
            cdacq_method method{};
            method.size = sizeof method;
            uint64_t ip = std::strtoull(*arguments, nullptr, 16);
            result.Printf("%#" PRIx64 " ", ip);
            if (cdacq_session_method_at(process.session(), ip, &method, &error) < 0)
                result.Printf("%s\n", error.message);
            else
                print_method(method, result);
        }
        result.SetStatus(lldb::eReturnStatusSuccessFinishResult);
        return true;
    }
};

} // namespace

namespace lldb
{

/* What lldb looks for in a plug-in. */
bool PluginInitialize(SBDebugger debugger);

__attribute__((visibility("default"))) bool PluginInitialize(SBDebugger debugger)
{
    SBCommand managed = debugger.GetCommandInterpreter().AddMultiwordCommand("managed", "Managed code of the process");
    return managed.AddCommand("stack", new Stack, "The stack of the selected thread.").IsValid() &&
           managed.AddCommand("method", new Method, "The methods that own addresses.").IsValid();
}

} // namespace lldb

"""heap_snapshot.py: reads a V8 heap snapshot and checks that it is whole, for tests of `cdacq heap --export`."""

import collections
import json

Node = collections.namedtuple("Node", "type name id size edges")
Edge = collections.namedtuple("Edge", "type label target")


class Broken(Exception):
    """What is wrong with the file."""


class Snapshot:
    """Nodes with their edges, by number. The root is node 0; `groups` are the nodes that it has, with roots as edges."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self._read(json.load(file))

    def _read(self, data):
        meta, strings = data["snapshot"]["meta"], data["strings"]
        node_size, edge_size = len(meta["node_fields"]), len(meta["edge_fields"])
        sizes = node_size * data["snapshot"]["node_count"], edge_size * data["snapshot"]["edge_count"]
        if (len(data["nodes"]), len(data["edges"])) != sizes:
            raise Broken("the counts of nodes or edges")
        if any(data[key] for key in ("trace_function_infos", "trace_tree", "samples", "locations")):
            raise Broken("an array that is not empty")
        edges = [self._edge(meta, strings, data["edges"][i:i + edge_size], node_size, len(data["nodes"]))
                 for i in range(0, len(data["edges"]), edge_size)]
        self.nodes, next_edge = [], 0
        for at in range(0, len(data["nodes"]), node_size):
            fields = dict(zip(meta["node_fields"], data["nodes"][at:at + node_size]))
            end = next_edge + fields["edge_count"]
            self.nodes.append(Node(meta["node_types"][0][fields["type"]], strings[fields["name"]], fields["id"], fields["self_size"],
                                   edges[next_edge:end]))
            next_edge = end
        if next_edge != len(edges):
            raise Broken(f"{len(edges)} edges, but nodes have {next_edge}")
        if len({node.id for node in self.nodes}) != len(self.nodes):
            raise Broken("two nodes with one id")
        self.groups = [self.nodes[edge.target] for edge in self.nodes[0].edges if self.nodes[edge.target].type == "native"]

    @staticmethod
    def _edge(meta, strings, numbers, node_size, end):
        fields = dict(zip(meta["edge_fields"], numbers))
        kind = meta["edge_types"][0][fields["type"]]
        if fields["to_node"] % node_size or not 0 <= fields["to_node"] < end:
            raise Broken(f"an edge to {fields['to_node']}")
        name = fields["name_or_index"]
        return Edge(kind, f"[{name}]" if kind in ("element", "hidden") else strings[name], fields["to_node"] // node_size)

    def types(self):
        """By name of a type: how many objects, and their bytes."""
        sums = collections.defaultdict(lambda: [0, 0])
        for node in self.nodes:
            if node.type == "object":
                sums[node.name][0] += 1
                sums[node.name][1] += node.size
        return {name: tuple(pair) for name, pair in sums.items()}

    def distances(self, begin):
        """How many edges each node is from the nearest of some nodes; those that are not reached are left out."""
        found, queue = dict.fromkeys(begin, 0), collections.deque(begin)
        while queue:
            node = queue.popleft()
            for edge in self.nodes[node].edges:
                if edge.target not in found:
                    found[edge.target] = found[node] + 1
                    queue.append(edge.target)
        return found

    def roots(self):
        return {edge.target for group in self.groups for edge in group.edges}

    def follow(self, root, path):
        """The nodes at the end of a path of `heap --why --json`; none: there is no such path."""
        at = {edge.target for group in self.groups for edge in group.edges if edge.label == root}
        at = {node for node in at if self.nodes[node].name == path[0]["type"]}
        for hop in path[1:]:
            at = {edge.target for node in at for edge in self.nodes[node].edges
                  if edge.label == hop["by"] and self.nodes[edge.target].name == hop["type"]}
        return at

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A TCP proxy in front of servers of which one is active. */
export interface TcpSwitch {
  readonly port: number;
  /** Directs new connections to another port and cuts the others. */
  switchTo(port: number): void;
  /** Stops passing bytes on, without closing anything, as a network that drops packets does. */
  hold(): void;
  /** Passes bytes on again. */
  resume(): void;
  close(): Promise<void>;
}

export async function startTcpSwitch(initialPort: number): Promise<TcpSwitch> {
  let target = initialPort;
  let isHeld = false;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(target, "127.0.0.1");
    for (const [socket, peer] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        peer.destroy();
      });
      socket.pipe(peer);
      if (isHeld) socket.pause();
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    switchTo(port) {
      target = port;
      cut();
    },
    hold() {
      isHeld = true;
      for (const socket of sockets) socket.pause();
    },
    resume() {
      isHeld = false;
      for (const socket of sockets) socket.resume();
    },
    async close() {
      cut();
      server.close();
      await once(server, "close");
    },
  };
}

import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { listenForNotifications } from "../../../../../../../src/transfers/index/store/postgres/connection/notifications.js";
import { closeAfterTest } from "../../../../../../support/close-after-test.js";
import { useTemporaryFolder } from "../../../../../../support/temporary-folder.js";

const getFolder = useTemporaryFolder();

test("connects again when the file with the certificates cannot be read any more", async () => {
  const sslRootCertificate = join(getFolder(), "ca.pem");
  writeFileSync(sslRootCertificate, "");
  const stopping = new AbortController();
  let connections = 0;
  const server = closeAfterTest(
    createServer((socket) => {
      connections += 1;
      if (connections === 1) rmSync(sslRootCertificate);
      else stopping.abort();
      socket.destroy();
    }),
  );
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  // Nobody handles what it rejects with.
  await listenForNotifications({
    location: {
      ...{ host: "127.0.0.1", port, database: "hop", user: "hop", password: undefined },
      ...{ sslMode: "verify-ca", sslRootCertificate },
    },
    onNotification() {},
    sleep: () => setImmediate(),
    signal: stopping.signal,
  });
  expect(connections).toBe(2);
});

import type { buildConnector } from "undici";

/** Counts the users of a resource and releases it when the last one has left. */
export interface RefCount {
  retain(): void;
  release(): void;
}

/** Starts with one user. */
export function createRefCount(onLastRelease: () => void): RefCount {
  let count = 1;
  return {
    retain() {
      count += 1;
    },
    release() {
      count -= 1;
      if (count === 0) onLastRelease();
    },
  };
}

/** Retains a resource while a connection is being made, because only its own timeout can end that. */
export function retainWhileConnecting(resource: RefCount, connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) => {
    resource.retain();
    connect(options, (...result) => {
      resource.release();
      callback(...result);
    });
  };
}

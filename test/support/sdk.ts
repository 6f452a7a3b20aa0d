// Runs test/e2e/sdk-client.ts and calls its functions.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export interface SdkProcess {
  /** Calls an SDK in the other process. @throws Error with the SDK's name, message and code. */
  call(name: string, args: Record<string, unknown>): Promise<any>; // any: a test reads what it expects
  stop(): Promise<void>;
}

interface Reply {
  id?: number;
  ready?: true;
  result?: unknown;
  error?: { name: string; message: string; code?: string; cause?: object };
}

/** @param caFile the CA that the process trusts, beside the public ones. */
export async function startSdkProcess(caFile: string): Promise<SdkProcess> {
  const child = fork(fileURLToPath(new URL('../e2e/sdk-client.ts', import.meta.url)), {
    env: { ...process.env, NODE_EXTRA_CA_CERTS: caFile },
  });
  const waiting = new Map<number, (reply: Reply) => void>();
  let calls = 0;
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`the SDK process ended with ${code}`)));
    child.on('message', (reply: Reply) => {
      if (reply.ready === true) resolve();
      else if (reply.id !== undefined) waiting.get(reply.id)?.(reply);
    });
  });
  return {
    call: (name, args) =>
      new Promise((resolve, reject) => {
        const id = ++calls;
        waiting.set(id, ({ result, error }) => {
          waiting.delete(id);
          if (error === undefined) resolve(result);
          else reject(Object.assign(new Error(error.message), error));
        });
        child.send({ id, name, args });
      }),
    stop: () =>
      new Promise((resolve) => {
        child.removeAllListeners('exit');
        child.once('exit', () => resolve());
        child.kill();
      }),
  };
}

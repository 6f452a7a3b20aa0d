// A container engine for tests: podman with crun, where both are installed and the tests run as root
// (`apt-get install --no-install-recommends buildah podman crun`). Its images and containers are in a directory of
// the test.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';

export interface Said {
  /** Its exit code. */
  code: number;
  stdout: string;
  stderr: string;
}

export interface ContainerEngine {
  /** Runs a command of podman, whatever it ends with. */
  podman(...args: string[]): Promise<Said>;
  /** Runs a command of buildah, whatever it ends with. */
  buildah(...args: string[]): Promise<Said>;
  /** Removes the containers and the directory. */
  stop(): Promise<void>;
}

/** Whether {@link startEngine} can be called here. */
export const hasEngine = (): boolean =>
  process.getuid?.() === 0 &&
  ['podman', 'buildah', 'crun', 'unshare', 'nsenter'].every((name) => existsSync(`/usr/bin/${name}`));

/** Starts one. @param directory it must not exist. */
export async function startEngine(directory: string): Promise<ContainerEngine> {
  // crun wants the control groups of version 2 alone. A mount namespace of our own has them, whatever the machine has.
  const mounts =
    'umount --recursive /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup && echo ready && exec cat';
  const space = spawn('unshare', ['--mount', 'sh', '-c', mounts], { stdio: ['pipe', 'pipe', 'inherit'] });
  await Promise.race([once(space.stdout, 'data'), once(space, 'exit')]);
  if (space.exitCode !== null) throw new Error('a mount namespace for containers could not be made');
  const places = ['--root', join(directory, 'storage'), '--runroot', join(directory, 'run')];
  const enter = ['--target', String(space.pid), '--mount'];
  // No layers on layers: an overlay cannot be mounted everywhere.
  const env = { ...process.env, STORAGE_DRIVER: 'vfs' };
  const run = (...args: string[]) =>
    new Promise<Said>((resolve) => {
      execFile('nsenter', [...enter, ...args], { env, maxBuffer: 1 << 26 }, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
      );
    });
  const runtime = ['--runtime', 'crun', '--cgroup-manager', 'cgroupfs', '--events-backend', 'none'];
  const podman = (...args: string[]) => run('podman', ...places, ...runtime, ...args);
  return {
    podman,
    buildah: (...args) => run('buildah', ...places, ...args),
    stop: async () => {
      await podman('rm', '--all', '--force', '--time', '0', '--volumes');
      space.stdin.end();
      await once(space, 'exit');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

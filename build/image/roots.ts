// The files of the container image, as directories: the runtime, which changes with Node.js and Debian, Gatehouse, and
// the directory for its data, which alone belongs to its user. There is no shell and no package manager in them: what is not there cannot be used by an intruder, and
// cannot have a vulnerability.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { packagesIn, standalone } from '../standalone.ts';
import { type DebianPackage, imageBill } from './bill.ts';

/** The user of the server, and its group. Named by number: Kubernetes compares only numbers with `runAsNonRoot`. */
export const USER = 1000;

/** What Node.js and the machine code of packages link to, and the name of the system for scanners. */
const PACKAGES = ['base-files', 'libc6', 'libgcc-s1', 'libstdc++6'];

/** Shared libraries, without the modules in subdirectories, which convert character sets and audit the linker. */
const LIBRARIES = '{,usr/}lib{,64}/{,*-linux-gnu*/}*.so{,.*}';

const ACCOUNTS = {
  'etc/passwd': `root:x:0:0:root:/:/sbin/nologin\ngatehouse:x:${USER}:${USER}::/data:/sbin/nologin\n`,
  'etc/group': `root:x:0:\ngatehouse:x:${USER}:\n`,
  'etc/nsswitch.conf': 'hosts: files dns\n',
};

/**
 * Writes `runtime`, `gatehouse` and `data` into a new or empty directory. The runtime has the Node.js that runs this script.
 * @throws Error when this machine is not a Debian with an up to date list of packages.
 */
export async function writeRoots(directory: string): Promise<void> {
  const packages = writeRuntime(join(directory, 'runtime'));
  const root = join(directory, 'gatehouse');
  const bundled = packagesIn(await standalone(join(root, 'app')));
  writeFileSync(join(root, 'app/sbom.cdx.json'), imageBill(bundled, packages));
  // Where operators mount their tenant file.
  mkdirSync(join(root, 'config'));
  mkdirSync(join(directory, 'data/data'), { recursive: true });
  chmodSync(join(directory, 'data/data'), 0o700);
}

function writeRuntime(root: string): DebianPackage[] {
  for (const place of ['etc', 'tmp', 'usr/lib', 'usr/lib64', 'usr/local/bin', 'var/lib/dpkg/status.d'])
    mkdirSync(join(root, place), { recursive: true });
  // The linker is found by its path in /lib or /lib64, wherever a release of Debian has it.
  for (const place of ['lib', 'lib64']) symlinkSync(`usr/${place}`, join(root, place));
  copyFileSync(process.execPath, join(root, 'usr/local/bin/node'));
  chmodSync(join(root, 'usr/local/bin/node'), 0o755);
  // Where its archive, the official image and npm's package `node` have it; the last may have lost it.
  const [licence] = globSync(['../LICENSE', '../node_modules/node-*/LICENSE'], {
    cwd: dirname(process.execPath),
  });
  if (licence !== undefined) {
    mkdirSync(join(root, 'usr/share/doc/node'), { recursive: true });
    copyFileSync(join(dirname(process.execPath), licence), join(root, 'usr/share/doc/node/copyright'));
  }
  for (const [file, text] of Object.entries(ACCOUNTS)) writeFileSync(join(root, file), text);
  symlinkSync('../usr/lib/os-release', join(root, 'etc/os-release'));
  chmodSync(join(root, 'tmp'), 0o1777);
  const scratch = mkdtempSync(join(tmpdir(), 'gatehouse-packages-'));
  try {
    return addPackages(root, scratch, PACKAGES);
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

/** Adds the libraries of Debian's packages, their licences, and what tells a scanner their versions. */
function addPackages(root: string, scratch: string, names: string[]): DebianPackage[] {
  const unpacked = join(scratch, 'unpacked');
  const files = download(scratch, names);
  for (const file of files) execFileSync('dpkg-deb', ['--extract', file, unpacked]);
  // Packages of one source share their licences, which are then in another package.
  const elsewhere = names
    .map((name) => documentation(unpacked, name))
    .filter((name) => !names.includes(name));
  for (const file of download(scratch, [...new Set(elsewhere)]))
    execFileSync('dpkg-deb', ['--extract', file, unpacked]);
  const found = globSync([LIBRARIES, 'usr/lib/os-release', 'usr/share/doc/*/copyright'], { cwd: unpacked });
  for (const path of found) {
    const target = join(root, path.startsWith('usr/') ? path : join('usr', path));
    mkdirSync(dirname(target), { recursive: true });
    cpSync(join(unpacked, path), target, { verbatimSymlinks: true });
  }
  return files.map((file) => {
    const status = execFileSync('dpkg-deb', ['--field', file], { encoding: 'utf8' });
    const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(status)?.[1] ?? '';
    writeFileSync(join(root, 'var/lib/dpkg/status.d', field('Package')), status);
    return { name: field('Package'), version: field('Version'), architecture: field('Architecture') };
  });
}

/** Downloads packages, which apt verifies. @returns the paths of their files. */
function download(directory: string, names: string[]): string[] {
  return names.flatMap((name) => {
    try {
      // The files are ours to read already, so there is nothing that apt's own user would protect.
      execFileSync('apt-get', ['--option', 'APT::Sandbox::User=root', 'download', name], {
        cwd: directory,
        stdio: 'pipe',
      });
    } catch (error) {
      throw new Error(
        `Debian's package ${name} could not be downloaded. Run this on Debian, after "apt-get update", or build deploy/Dockerfile.`,
        { cause: error },
      );
    }
    return globSync(`${name}_*.deb`, { cwd: directory }).map((file) => join(directory, file));
  });
}

/** Returns the package that has the documentation of a package: itself, or the one that a link names. */
function documentation(unpacked: string, name: string): string {
  try {
    return basename(readlinkSync(join(unpacked, 'usr/share/doc', name)));
  } catch {
    return name;
  }
}

if (import.meta.main) {
  const [directory] = process.argv.slice(2);
  if (directory === undefined) throw new Error('node build/image/roots.ts <directory>');
  await writeRoots(resolve(directory));
}

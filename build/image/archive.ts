// An image in one file, made without a container engine: a tar file in the layout of the OCI image specification,
// with the `manifest.json` that older versions of `docker load` read. The same files give the same image, byte for
// byte.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { ImageConfiguration } from './configuration.ts';

export interface Layer {
  /** What the history of the image calls it. */
  title: string;
  /** A directory whose content is added to the root. */
  root: string;
  /** Directories in it with an owner (user and group) and a mode of their own; all else belongs to root. */
  special?: Record<string, { owner: number; mode: string }>;
}

interface Blob {
  mediaType: string;
  digest: string;
  size: number;
}

const ARCHITECTURES: Record<string, string> = { x64: 'amd64', arm64: 'arm64' };
const MEDIA = 'application/vnd.oci.image';

/** The time that the image and its files bear, by default 1970 (https://reproducible-builds.org/specs/source-date-epoch/). */
export const buildTime = () => new Date(Number(process.env.SOURCE_DATE_EPOCH ?? 0) * 1000).toISOString();

/**
 * Writes the image.
 * @param names what `docker load` calls it, such as `gatehouse:1.0.0`.
 * @returns its digest.
 */
export function writeArchive(
  file: string,
  names: string[],
  layers: Layer[],
  config: ImageConfiguration,
): string {
  const layout = mkdtempSync(join(dirname(file), '.image-'));
  try {
    mkdirSync(join(layout, 'blobs/sha256'), { recursive: true });
    const add = (mediaType: string, content: Buffer | object): Blob => {
      const bytes = Buffer.isBuffer(content) ? content : Buffer.from(JSON.stringify(content));
      writeFileSync(join(layout, 'blobs/sha256', sha256(bytes)), bytes);
      return { mediaType: `${MEDIA}.${mediaType}`, digest: `sha256:${sha256(bytes)}`, size: bytes.length };
    };
    const packed = layers.map((layer) => {
      const tar = tarOf(layer, join(layout, 'layer.tar'));
      return { diff: `sha256:${sha256(tar)}`, blob: add('layer.v1.tar+gzip', gzipSync(tar)) };
    });
    const created = buildTime();
    const image = add('config.v1+json', {
      created,
      architecture: ARCHITECTURES[process.arch] ?? process.arch,
      os: 'linux',
      config,
      rootfs: { type: 'layers', diff_ids: packed.map(({ diff }) => diff) },
      history: layers.map(({ title }) => ({ created, created_by: title })),
    });
    const blobs = packed.map(({ blob }) => blob);
    const mediaType = `${MEDIA}.manifest.v1+json`;
    const manifest = add('manifest.v1+json', { schemaVersion: 2, mediaType, config: image, layers: blobs });
    const manifests = names.map((name) => ({
      ...manifest,
      annotations: { 'org.opencontainers.image.ref.name': name, 'io.containerd.image.name': name },
    }));
    const pathOf = ({ digest }: Blob) => `blobs/${digest.replace(':', '/')}`;
    const files = {
      'oci-layout': { imageLayoutVersion: '1.0.0' },
      'index.json': { schemaVersion: 2, mediaType: `${MEDIA}.index.v1+json`, manifests },
      'manifest.json': [{ Config: pathOf(image), RepoTags: names, Layers: blobs.map(pathOf) }],
    };
    for (const [name, content] of Object.entries(files))
      writeFileSync(join(layout, name), JSON.stringify(content));
    tar('--create', file, layout, [...Object.keys(files), 'blobs'], { owner: 0, mode: 'u=rwX,go=rX' });
    return manifest.digest;
  } finally {
    rmSync(layout, { recursive: true });
  }
}

function tarOf({ root, special = {} }: Layer, file: string): Buffer {
  const plain = readdirSync(root).filter((name) => !(name in special));
  // With an empty list, as for a directory that is special as a whole, there is an archive to append to.
  tar('--create', file, root, ['--files-from=/dev/null', ...plain.sort()], { owner: 0, mode: 'u=rwX,go=rX' });
  for (const [name, owned] of Object.entries(special)) tar('--append', file, root, [name], owned);
  const bytes = readFileSync(file);
  rmSync(file);
  return bytes;
}

/** Runs GNU tar, so that nothing of this machine gets into the file: no times, no users, no order of a directory. */
function tar(
  action: '--create' | '--append',
  file: string,
  root: string,
  names: string[],
  { owner, mode }: { owner: number; mode: string },
): void {
  const same = ['--format=gnu', '--sort=name', `--mtime=${buildTime()}`, '--numeric-owner'];
  const owned = [`--owner=${owner}`, `--group=${owner}`, `--mode=${mode}`];
  execFileSync('tar', [action, '--file', file, ...same, ...owned, '--directory', root, ...names]);
}

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

// Makes the container image without a container engine and without an image registry: `npm run image -- <directory>`
// writes `gatehouse-image.tar` and its bill of materials. docs/do/containers.md
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ROOT } from '../bundle.ts';
import { writeArchive } from './archive.ts';
import { imageConfiguration } from './configuration.ts';
import { USER, writeRoots } from './roots.ts';

/** Writes both files into a directory. @returns the digest of the image. */
export async function writeImage(directory: string): Promise<string> {
  mkdirSync(directory, { recursive: true });
  const roots = mkdtempSync(join(directory, '.roots-'));
  try {
    await writeRoots(roots);
    copyFileSync(join(roots, 'gatehouse/app/sbom.cdx.json'), join(directory, 'gatehouse-image.cdx.json'));
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    return writeArchive(
      join(directory, 'gatehouse-image.tar'),
      [`gatehouse:${version}`],
      [
        {
          title: `Node.js ${process.versions.node} and the libraries that it needs`,
          root: join(roots, 'runtime'),
          special: { tmp: { owner: 0, mode: '1777' } },
        },
        { title: `Gatehouse ${version}`, root: join(roots, 'gatehouse') },
        {
          title: 'The directory for data',
          root: join(roots, 'data'),
          special: { data: { owner: USER, mode: '0700' } },
        },
      ],
      imageConfiguration(),
    );
  } finally {
    rmSync(roots, { recursive: true });
  }
}

if (import.meta.main) {
  const [directory] = process.argv.slice(2);
  if (directory === undefined) throw new Error('npm run image -- <directory>');
  process.stdout.write(`${await writeImage(resolve(directory))}\n`);
}

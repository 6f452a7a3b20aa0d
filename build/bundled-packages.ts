// The packages that are bundled into our files, and what their manifests say.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { inputsOf, ROOT } from './bundle.ts';

export interface Manifest {
  name: string;
  version: string;
  license?: string;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}

/** @param place path of the package from the repository. */
export const manifestOf = (place: string): Manifest =>
  JSON.parse(readFileSync(join(ROOT, place, 'package.json'), 'utf8'));

/** Returns the paths of the packages that are bundled into the published package, from the repository. */
export const bundled = async () => packagesOf(await inputsOf('apart'));

/** Returns the packages that files belong to, in alphabetical order. All are paths from the repository. */
export function packagesOf(files: string[]): string[] {
  const places = files.flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? []);
  return [...new Set(places)].sort();
}

/** Returns the licences of the packages that files belong to. @param files paths from the repository. */
export function licencesOf(files: string[]): string {
  const texts = packagesOf(files).map((place) => {
    const { name, version, license = 'no licence named' } = manifestOf(place);
    const own = globSync('{LICEN[CS]E,COPYING,NOTICE}*', { cwd: join(ROOT, place) }).sort();
    const said = own.map((file) => readFileSync(join(ROOT, place, file), 'utf8').trim());
    return [`${name} ${version} (${license})`, ...said].join('\n\n');
  });
  return `${texts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}

// The software bill of materials of the container image (CycloneDX 1.6): the packages of npm that Gatehouse is bundled
// with, which a scanner cannot see in the bundle, Node.js, and the packages of Debian. It is made from what was bundled:
// `npm sbom` knows only what is installed, and with `--omit=dev` it forgets packages that others need for development.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../bundle.ts';
import { manifestOf } from '../bundled-packages.ts';
import { buildTime } from './archive.ts';

export interface DebianPackage {
  name: string;
  version: string;
  architecture: string;
}

/**
 * Returns it as JSON, the same for the same packages.
 * @param places the directories of packages of npm, from the repository.
 */
export function imageBill(places: string[], packages: DebianPackage[]): string {
  const { packages: locked } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  const components = [
    ...places.map((place) => npmComponent(place, locked[place]?.integrity)),
    nodeComponent(),
    ...packages.map(debianComponent),
  ];
  const { name, version, license } = manifestOf('');
  const own = { ...npmPackage(name, version), type: 'application', licenses: [{ expression: license }] };
  // Several copies of a package have one entry.
  const entries = [...new Map(components.map((one) => [one.purl, one])).values()];
  const bill = { metadata: { timestamp: buildTime(), component: own }, components: entries };
  const head = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    serialNumber: uuidOf(JSON.stringify(bill)),
  };
  return `${JSON.stringify({ ...head, ...bill }, null, 2)}\n`;
}

/** @param integrity of the package's archive, as in the lock file. */
export function npmComponent(place: string, integrity?: string) {
  const { name, version, license } = manifestOf(place);
  const [algorithm, digest = ''] = integrity?.split('-') ?? [];
  return {
    ...npmPackage(name, version),
    ...(license === undefined ? {} : { licenses: [{ expression: license }] }),
    ...(algorithm === 'sha512'
      ? { hashes: [{ alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') }] }
      : {}),
  };
}

const npmPackage = (name: string, version: string) =>
  component('library', name, version, `pkg:npm/${name.replace('@', '%40')}@${version}`);

function nodeComponent() {
  const { node } = process.versions;
  return component('application', 'node', node, `pkg:generic/node@${node}`);
}

const debianComponent = ({ name, version, architecture }: DebianPackage) =>
  component(
    'library',
    name,
    version,
    `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`,
  );

const component = (type: string, name: string, version: string, purl: string) => ({
  'bom-ref': purl,
  type,
  name,
  version,
  purl,
});

/** A UUID made of a digest (RFC 9562 §5.8). */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`];
  return `urn:uuid:${[...parts, hex.slice(20, 32)].join('-')}`;
}

// Writes the software bill of materials of the published package (CycloneDX 1.5): the packages that are installed with
// it, as `npm sbom` lists them, and those that are bundled into its files.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { ROOT } from './bundle.ts';
import { bundled, type Manifest, manifestOf } from './bundled-packages.ts';
import { npmComponent } from './image/bill.ts';

interface Component {
  'bom-ref': string;
  type: string;
  name: string;
  version: string;
  scope: string;
  purl: string;
  properties: { name: string; value: string }[];
}

interface Lock {
  packages: Record<string, Manifest & { integrity?: string; dev?: boolean }>;
}

export interface Sbom {
  bomFormat: string;
  specVersion: string;
  serialNumber: string;
  metadata: { timestamp: string; component: Component };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

/** Returns the bill of materials, with the versions of the lock file. */
export async function sbom(): Promise<Sbom> {
  const lock: Lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  const installed = installedPackages(lock);
  const own = installed.metadata.component;
  const inside = (await bundled()).map((place) => {
    const component = npmComponent(place, lock.packages[place]?.integrity);
    return {
      ...component,
      'bom-ref': `${component.name}@${component.version}`,
      scope: 'required',
      // A name of CycloneDX's taxonomy of npm.
      properties: [{ name: 'cdx:npm:package:bundled', value: 'true' }],
    };
  });
  const refs = [...new Set(inside.map((component) => component['bom-ref']))];
  return {
    ...installed,
    // npm gives it the name of the directory.
    metadata: { ...installed.metadata, component: { ...own, name: manifestOf('').name } },
    components: [...installed.components, ...inside],
    dependencies: [
      ...installed.dependencies.map(({ ref, dependsOn }) => ({
        ref,
        dependsOn: ref === own['bom-ref'] ? [...dependsOn, ...refs] : dependsOn,
      })),
      // What they need is bundled as well, or installed as a dependency of the package itself.
      ...refs.map((ref) => ({ ref, dependsOn: [] })),
    ],
  };
}

/**
 * Returns what `npm sbom` lists for a directory without dependencies of the development. Its option `--omit=dev` also
 * leaves out what is needed both at run time and by one of those.
 */
function installedPackages(lock: Lock): Sbom {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-sbom-'));
  const write = (name: string, content: object) =>
    writeFileSync(join(directory, name), JSON.stringify(content));
  const manifest = { ...lock.packages[''], devDependencies: {} };
  const others = Object.entries(lock.packages).filter(([place, { dev }]) => place !== '' && dev !== true);
  try {
    write('package.json', manifest);
    write('package-lock.json', { ...lock, packages: { '': manifest, ...Object.fromEntries(others) } });
    const args = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'];
    return JSON.parse(execFileSync('npm', args, { cwd: directory, encoding: 'utf8' }));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  const [file = 'sbom.cdx.json'] = process.argv.slice(2);
  const made = await sbom();
  writeFileSync(resolve(file), `${JSON.stringify(made, null, 2)}\n`);
  process.stdout.write(`${file}: ${made.components.length} packages\n`);
}

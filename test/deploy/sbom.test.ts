// The software bill of materials of the published package.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { z } from 'zod';
import { ROOT } from '../../build/bundle.ts';
import { bundled, manifestOf } from '../../build/bundled-packages.ts';
import { type Sbom, sbom } from '../../build/sbom.ts';

/** What readers need of CycloneDX 1.5 (ECMA-424). */
const schema = z.object({
  $schema: z.literal('http://cyclonedx.org/schema/bom-1.5.schema.json'),
  bomFormat: z.literal('CycloneDX'),
  specVersion: z.literal('1.5'),
  serialNumber: z.string().regex(/^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
  version: z.literal(1),
  metadata: z.object({
    timestamp: z.iso.datetime(),
    component: z.object({ name: z.literal('gatehouse'), version: z.string(), purl: z.string() }),
  }),
  components: z.array(
    z.object({
      'bom-ref': z.string(),
      type: z.literal('library'),
      name: z.string(),
      version: z.string().regex(/^\d+\.\d+\.\d+/),
      scope: z.enum(['required', 'optional']),
      purl: z.string().regex(/^pkg:npm\/[\w%./-]+@\d/),
      hashes: z.tuple([
        z.object({ alg: z.literal('SHA-512'), content: z.string().regex(/^[0-9a-f]{128}$/) }),
      ]),
      licenses: z
        .array(
          z.union([
            z.object({ license: z.object({ id: z.string() }) }),
            z.object({ expression: z.string() }),
          ]),
        )
        .min(1),
    }),
  ),
  dependencies: z.array(z.object({ ref: z.string(), dependsOn: z.array(z.string()) })),
});

describe('the software bill of materials', () => {
  let made: Sbom;
  before(async () => {
    made = await sbom();
  });
  const names = (isBundled: boolean) =>
    made.components
      .filter(
        ({ properties }) => properties.some(({ name }) => name === 'cdx:npm:package:bundled') === isBundled,
      )
      .map((one) => `${one.name}@${one.version}`);

  it('has the form of CycloneDX 1.5, with version, hash and licence of each package', () => {
    const { error } = schema.safeParse(made);
    expect(error?.issues ?? []).to.deep.equal([]);
  });

  it('has each package that is installed at run time, in the version of the lock file', () => {
    const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
    const locked = Object.entries<{ version: string; dev?: boolean }>(packages).filter(
      ([place, { dev }]) => place !== '' && dev !== true,
    );
    expect(locked).to.have.lengthOf.above(50);
    const expected = locked.map(
      ([place, { version }]) => `${place.split('node_modules/').at(-1)}@${version}`,
    );
    expect(names(false)).to.include.members(expected);
    expect(names(false).filter((one) => !expected.includes(one))).to.deep.equal([]);
  });

  it('has each package that is bundled, and says so', async () => {
    const expected = (await bundled()).map(manifestOf).map(({ name, version }) => `${name}@${version}`);
    expect(expected.map((one) => one.slice(0, one.lastIndexOf('@')))).to.include.members(['twilio', 'pino']);
    expect(names(true)).to.deep.equal(expected);
  });

  it('names every package as a dependency of one that it has', () => {
    const refs = [made.metadata.component, ...made.components].map((one) => one['bom-ref']);
    const needed = made.dependencies.flatMap(({ dependsOn }) => dependsOn);
    expect(needed.filter((ref) => !refs.includes(ref))).to.deep.equal([]);
    expect(refs.slice(1).filter((ref) => !needed.includes(ref))).to.deep.equal([]);
  });
});

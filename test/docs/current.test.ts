// The generated documents are current and correct.

import { readFile } from 'node:fs/promises';
import { Validator } from '@seriousme/openapi-schema-validator';
import { expect } from 'chai';
import { describedApi, describedManagement, documents, ROOT } from '../../build/docs/documents.ts';
import { collections } from '../../src/records/collections.ts';
import { DECLARATIONS, FEATURES } from '../../src/server/features.ts';

describe('the documents', () => {
  it('match the declarations in the code (otherwise run `npm run docs`)', async () => {
    for (const [path, text] of await documents()) {
      expect(await readFile(`${ROOT}${path}`, 'utf8'), path).to.equal(text);
    }
  });

  it('have the API in valid OpenAPI 3.1', async () => {
    for (const api of [describedApi(), describedManagement()]) {
      const { valid, errors } = await new Validator().validate(api);
      expect(errors).to.equal(undefined);
      expect(valid).to.equal(true);
    }
  });

  it("leave out requests of the server's own pages, and nothing that programs call", () => {
    // The Management API has a document of its own, which is generated from the list of its calls.
    const others = FEATURES.filter(({ name }) => name !== 'management');
    const undocumented = others.flatMap(({ routes = {} }) =>
      Object.entries(routes)
        .filter(([, { summary, errors }]) => summary === undefined && errors !== 'page')
        .map(([key]) => key),
    );
    expect(undocumented).to.deep.equal(['POST /usernamepassword/login']);
  });
});

describe('the declarations of features and parts', () => {
  it('include every collection once', () => {
    const owned = DECLARATIONS.flatMap((one) => one.collections ?? []);
    expect([...owned].sort()).to.deep.equal(Object.keys(collections).sort());
  });

  it('have unique names', () => {
    const names = DECLARATIONS.map(({ name }) => name);
    expect(names).to.deep.equal([...new Set(names)]);
  });
});

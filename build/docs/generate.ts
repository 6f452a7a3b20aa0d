// Writes the documents that are generated from declarations in the code: `npm run docs`.
import { writeFile } from 'node:fs/promises';
import { documents, ROOT } from './documents.ts';

for (const [path, text] of await documents()) await writeFile(`${ROOT}${path}`, text);

// Makes the site of the documents: `npm run site`. With --if-possible nothing fails: npm runs that after each installation,
// also one without the packages for development, or with a Node.js that reads no TypeScript.
const isOptional = process.argv.includes('--if-possible');

try {
  const { writeSite } = await import('./site.ts');
  await writeSite();
} catch (thrown) {
  if (!isOptional) throw thrown;
  process.stderr.write(`The server will not have the documents at /docs: ${String(thrown)}\n`);
}

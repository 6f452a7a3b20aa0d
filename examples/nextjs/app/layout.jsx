import './style.css';

export const metadata = { title: 'Next.js example', icons: 'data:,' };

export default function Layout({ children }) {
  return (
    <html lang="en">
      <body>
        <main>
          <h1>Next.js example</h1>
          {children}
        </main>
      </body>
    </html>
  );
}

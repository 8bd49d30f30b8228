import "./product.css";
import type { ProductDetail, Variable } from "@stoa/sdk";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Avatar } from "../../components/avatar.tsx";
import { Cover } from "../../components/cover.tsx";
import { ChevronIcon, StarIcon } from "../../components/icons.tsx";
import { Markdown } from "../../components/markdown.tsx";
import { ProductCard, ProductType } from "../../components/product-card.tsx";
import { Time } from "../../components/time.tsx";
import { productIdOf } from "../../first-requests.ts";
import { formatCount, formatMoney, formatRating } from "../../lib/format.ts";
import { useTitle } from "../../lib/use-title.ts";
import { categoriesQuery, productQuery, similarQuery, versionsQuery } from "../../queries/market.ts";
import { useAccount } from "../../session.ts";
import { BuyButton, Offer } from "./product-offer.tsx";
import { Reviews } from "./product-reviews.tsx";
import { Samples } from "./product-samples.tsx";
import { ScoreCardSection } from "./score-card.tsx";
import { TryButton, TryOut, useTryOut } from "./try-out.tsx";

const route = getRouteApi("/p/$slug");

export default function Product() {
  const { slug } = route.useParams();
  const id = productIdOf(slug);
  const { data: product } = useSuspenseQuery(productQuery(id));
  const tries = useTryOut(product);
  useTitle(product.title);
  return (
    <main className="product" id="content">
      <Crumbs product={product} />
      <div className="cols">
        <div>
          <Head product={product} />
          {product.scoreCard && <ScoreCardSection card={product.scoreCard} />}
          {tries && <TryOut key={id} {...tries} />}
          <Variables variables={product.variables} />
          <Samples samples={product.samples} />
          <Preview product={product} />
          <Facts title="What you need" items={product.requirements} />
          <Facts title="Features" items={product.features} />
          <Versions product={product} />
          <Reviews product={product} />
          <Similar id={id} />
        </div>
        <div className="col">
          <Offer product={product}>{tries && tries.tryOut.leftToday > 0 && <TryButton {...tries} />}</Offer>
          <Seller author={product.author} />
        </div>
      </div>
      <div className="buy-bar">
        <b className="num">{formatMoney(product.price, product.currency)}</b>
        <BuyButton product={product} />
      </div>
    </main>
  );
}

function Crumbs({ product }: { product: ProductDetail }) {
  const { data } = useQuery(categoriesQuery);
  const own = data?.data.find(({ slug }) => slug === product.category);
  const parent = data?.data.find(({ slug }) => slug === own?.parent);
  return (
    <nav className="crumb" aria-label="Breadcrumb">
      <Link to="/">Market</Link>
      {[parent, own].map(
        (category) =>
          category && (
            <span className="crumb" key={category.slug}>
              <ChevronIcon size={13} />
              <Link to="/search" search={{ category: category.slug }}>
                {category.name}
              </Link>
            </span>
          ),
      )}
    </nav>
  );
}

function Head({ product }: { product: ProductDetail }) {
  const { stats, author } = product;
  const image = product.gallery[0];
  return (
    <div className="head">
      <Cover product={product} image={image?.url ?? null} alt={image?.alt ?? ""} isFirst />
      <h1 className="title" dir="auto">
        {product.title}
      </h1>
      <div className="row wrap by">
        <span className="tag">
          <ProductType type={product.type} />
        </span>
        <Link to="/u/$handle" params={{ handle: author.handle ?? author.id }} className="row m" dir="auto">
          <Avatar name={author.name} image={author.avatar} isSmall />
          {author.name}
        </Link>
        {author.verified && <span className="tag accent">Verified</span>}
        {stats.reviews > 0 && (
          <a href="#reviews" className="row stars">
            <StarIcon size={14} className="star" />
            <b className="num">{formatRating(stats.rating)}</b>
            <span className="soft">
              {formatCount(stats.reviews)} {stats.reviews === 1 ? "review" : "reviews"}
            </span>
          </a>
        )}
        <span className="soft">Version {product.version}</span>
      </div>
      <div className="reading" dir="auto">
        <Markdown text={product.description} />
      </div>
    </div>
  );
}

function Variables({ variables }: { variables: Variable[] }) {
  if (variables.length === 0) return null;
  return (
    <section className="beam">
      <h2>What it asks for</h2>
      <dl className="variables">
        {variables.map((variable) => (
          <div key={variable.name}>
            <dt>
              <code>{variable.name}</code>
              {!variable.required && <span className="faint"> optional</span>}
            </dt>
            <dd dir="auto">{describeVariable(variable)}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

const describeVariable = ({ description, enum: values, default: value }: Variable): string =>
  [
    description,
    values && `One of: ${values.join(", ")}.`,
    value !== undefined && value !== "" && `Default: ${value}.`,
  ]
    .filter(Boolean)
    .join(" ") || "Text";

function Preview({ product }: { product: ProductDetail }) {
  if (product.contentPreview === "") return null;
  return (
    <section className="beam">
      <h2>Preview</h2>
      <pre className="codeblock wrap" dir="auto">
        {product.contentPreview}
      </pre>
    </section>
  );
}

function Facts({ title, items }: { title: string; items: string[] }) {
  if (items.length === 0) return null;
  return (
    <section className="beam">
      <h2>{title}</h2>
      <ul className="bullets" dir="auto">
        {items.map((item) => (
          <li key={item}>{item}</li>
        ))}
      </ul>
    </section>
  );
}

/** Visitors cannot list the versions; they see the newest. */
function Versions({ product }: { product: ProductDetail }) {
  const account = useAccount();
  const { data } = useQuery({ ...versionsQuery(product.id), enabled: account !== null });
  const newest = { version: product.version, changelog: product.changelog, createdAt: product.updatedAt };
  const shown = data?.data ?? [newest];
  return (
    <section className="beam">
      <h2>Versions</h2>
      <ul className="versions">
        {shown.map(({ version, changelog, createdAt }) => (
          <li key={version}>
            <b className="num">{version}</b>
            <span dir="auto">{changelog || "First version"}</span>
            <Time iso={createdAt} isDay className="soft" />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Similar({ id }: { id: string }) {
  const { data } = useSuspenseQuery(similarQuery(id));
  if (data.data.length === 0) return null;
  return (
    <section className="beam">
      <h2>Similar</h2>
      <div className="grid three">
        {data.data.map((product) => (
          <ProductCard key={product.id} product={product} />
        ))}
      </div>
    </section>
  );
}

function Seller({ author }: { author: ProductDetail["author"] }) {
  return (
    <div className="seller beam thin">
      <Avatar name={author.name} image={author.avatar} />
      <div className="stack">
        <Link to="/u/$handle" params={{ handle: author.handle ?? author.id }} className="b" dir="auto">
          {author.name}
        </Link>
        {author.bio && (
          <p className="sm soft" dir="auto">
            {author.bio}
          </p>
        )}
      </div>
    </div>
  );
}

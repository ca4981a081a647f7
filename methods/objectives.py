"""Pure loss functions on tensors: tensors in, scalar out, nothing modified, nothing random.

Shapes are row-major: n sentences (rows) by d features. Statistics, normalisation and sums are
computed in float32 even under autocast and for half-precision inputs, because squares of small
correlations underflow in half precision; float64 inputs stay float64. Wrong shapes raise
ValueError.

Sources: SimCSE (Gao et al., EMNLP 2021), SCD (Klein & Nabi, ACL 2022), NC (Farina & Pappadopulo,
2023, arXiv 2310.17690), SG (Kim, Yoo & Lee, ACL 2021), and the reference code of each where it
exists.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from methods.parts.row_vectors import check_rows, check_temperature, full_precision, unit

Similarity = Literal["cosine", "dot"]


@full_precision
def nt_xent(
    anchors: Tensor,
    positives: Tensor,
    *,
    temperature: float,
    hard_negatives: Tensor | None = None,
    hard_negative_weight: float = 0.0,
    similarity: Similarity = "cosine",
) -> Tensor:
    """Contrast every anchor with all positives (and all hard negatives), one direction only.

        >>> x = torch.eye(2)  # two sentences at a right angle, each equal to its other view
        >>> round(float(nt_xent(x, x, temperature=1.0)), 4)  # log(1 + 1/e)
        0.3133

    L = -(1/n) sum_i log( exp(cos(a_i, p_i)/t) / [sum_j exp(cos(a_i, p_j)/t) + sum_j exp(cos(a_i,
    h_j)/t + w d_ij)] )

    with w = `hard_negative_weight`, a log-weight that is added to the logit of an anchor's own hard
    negative only (d_ij = 1 where i = j, else 0).

    Args:
        anchors, positives: (n, d); row i of one belongs to row i of the other.
        hard_negatives: (n, d) or None.
        similarity: "dot" puts dot products in the cosines' place (the paper's ablation, with
            temperature 1).

    Source: SimCSE Eq. 4 (unsupervised) and Eq. 5 with its weighted form; paper and code agree. The
    positive is part of the denominator and the gradient flows through both sides. n = 1 without hard negatives gives 0.
    """
    check_rows(anchors, positives)
    check_temperature(temperature)
    if similarity not in ("cosine", "dot"):
        raise ValueError(f'similarity must be "cosine" or "dot", got {similarity!r}')

    def scale(x: Tensor) -> Tensor:
        if similarity == "cosine":
            return unit(x)
        return x

    a = scale(anchors)
    logits = a @ scale(positives).T / temperature
    if hard_negatives is not None:
        check_rows(anchors, hard_negatives)
        hard = a @ scale(hard_negatives).T / temperature
        own = torch.eye(len(a), dtype=a.dtype, device=a.device)
        logits = torch.cat([logits, hard + hard_negative_weight * own], dim=1)
    return functional.cross_entropy(logits, torch.arange(len(a), device=a.device))


@full_precision
def nt_xent_symmetric(a: Tensor, b: Tensor, *, temperature: float) -> Tensor:
    """Contrast each of the 2n rows with the 2n - 1 others (SimCLR, DeCLUTR, SG's L_base); mean over
    2n.

        >>> x = torch.eye(2)
        >>> round(float(nt_xent_symmetric(x, x, temperature=1.0)), 4)  # log(1 + 2/e)
        0.5514

    l(x) = -log( exp(cos(x, partner)/t) / sum_{y != x} exp(cos(x, y)/t) ) over all rows x of a and
    b, (n, d) each.

    Source: DeCLUTR Eq. 2. Its Eq. 1 sums the 2n terms, its code averages them; this is the mean.
    SG's released class fails on this form (n labels for 2n rows); the mean over 2n is what its
    summary describes.
    """
    check_rows(a, b)
    check_temperature(temperature)
    n = len(a)
    x = unit(torch.cat([a, b]))
    itself = torch.eye(2 * n, dtype=torch.bool, device=x.device)
    logits = (x @ x.T / temperature).masked_fill(itself, float("-inf"))
    partner = torch.arange(2 * n, device=x.device).roll(n)
    return functional.cross_entropy(logits, partner)


def _identity_penalty(a: Tensor, b: Tensor, off_diagonal_weight: float) -> tuple[Tensor, Tensor]:
    """sum_j (1 - c_jj)^2 and weight * sum_{j != k} c_jk^2 of c = a^T b / n, for already scaled (n,
    d) inputs.

    With more features than rows c is never formed: sum_jk c_jk^2 = sum_il (a a^T)_il (b b^T)_il /
    n^2 needs n x n matrices instead of d x d, d / n times less work and memory (n = 192, d = 4096:
    21 times).
    """
    n, d = a.shape
    diagonal = (a * b).sum(0) / n
    if n < d:
        off = ((a @ a.T) * (b @ b.T)).sum() / n**2 - diagonal.square().sum()
    else:
        c = a.T @ b / n
        off = (c - torch.diag(c.diagonal())).square().sum()
    return (1 - diagonal).square().sum(), off_diagonal_weight * off


def _standardise(x: Tensor, *, eps: float, unbiased: bool = False) -> Tensor:
    """Columns with mean 0 and variance 1 over the batch, as an affine-free BatchNorm in training
    does.
    """
    centred = x - x.mean(0)
    variance = centred.square().sum(0) / (len(x) - int(unbiased))
    return centred / (variance + eps).sqrt()


@full_precision
def barlow_twins_terms(
    z_a: Tensor,
    z_b: Tensor,
    *,
    off_diagonal_weight: float,
    unbiased: bool = False,
    eps: float = 1e-5,
) -> dict[str, Tensor]:
    """Push the cross-correlation matrix of two views' projections to the identity: "loss", and its
    two sums.

        >>> z = torch.tensor([[1.0, 1.0], [1.0, 1.0], [-1.0, -1.0], [-1.0, -1.0]])  # one column twice
        >>> terms = barlow_twins_terms(z, z, off_diagonal_weight=0.1)
        >>> {name: round(float(term), 4) for name, term in terms.items()}
        {'loss': 0.2, 'invariance': 0.0, 'redundancy': 0.2}

    L = sum_j (1 - r_jj)^2 + w sum_{j != k} r_jk^2,  r_jk = (1/n) sum_i zhatA_ij zhatB_ik

    zhat = columns standardised over the batch, variance with divisor n plus `eps` (BatchNorm's
    1e-5). Plain sums, no division by d; gradients through both views.

    Args:
        z_a, z_b: (n, d), n >= 2.
        unbiased: divide the variance by n - 1 while r still divides by n, as the vision paper's
            pseudo-code does, which caps r_jj at (n - 1)/n. The reference code (and the default)
            uses the biased variance.

    Source: NC Eq. 2; facebookresearch/barlowtwins.
    """
    check_rows(z_a, z_b, rows=2)
    a, b = (_standardise(z, eps=eps, unbiased=unbiased) for z in (z_a, z_b))
    on, off = _identity_penalty(a, b, off_diagonal_weight)
    return {"loss": on + off, "invariance": on, "redundancy": off}


@full_precision
def vicreg_terms(
    z_a: Tensor,
    z_b: Tensor,
    *,
    invariance: float,
    variance: float,
    covariance: float,
    gamma: float = 1.0,
    eps: float = 1e-4,
) -> dict[str, Tensor]:
    """Variance, invariance and covariance terms in the form of the sentence paper: their sum as
    "loss", and each.

        >>> z = torch.zeros(4, 2)  # all vectors alike: the standard deviation is 0.01 instead of 1
        >>> terms = vicreg_terms(z, z, invariance=25.0, variance=25.0, covariance=1.0)
        >>> {name: round(float(term), 2) for name, term in terms.items()}
        {'loss': 49.5, 'invariance': 0.0, 'variance': 49.5, 'covariance': 0.0}

    L = (l_I/n) sum_i ||zA_i - zB_i||^2 + (l_V/d) sum_{A,B} sum_j max(0, gamma - sqrt(Cov_jj + eps))
        + (l_C/d) sum_{A,B} sum_{j != k} Cov_jk^2,   Cov centred with divisor n - 1

    Args:
        z_a, z_b: (n, d), n >= 2.
        invariance, variance, covariance: l_I, l_V, l_C.

    Source: NC Eq. 3. The reference code (facebookresearch/vicreg) averages the invariance over d as
    well and halves the variance term: its coefficients (i, v, c) are (i/d, v/2, c) here.
    """
    check_rows(z_a, z_b, rows=2)
    n, d = z_a.shape
    total = invariance * (z_a - z_b).square().sum() / n
    terms = {
        "invariance": total,
        "variance": total.new_zeros(()),
        "covariance": total.new_zeros(()),
    }
    for z in (z_a, z_b):
        centred = z - z.mean(0)
        var = centred.square().sum(0) / (n - 1)
        spread = variance / d * (gamma - (var + eps).sqrt()).relu().sum()
        if n < d:  # the same identity as in _identity_penalty
            off = (centred @ centred.T).square().sum() / (n - 1) ** 2 - var.square().sum()
        else:
            cov = centred.T @ centred / (n - 1)
            off = (cov - torch.diag(cov.diagonal())).square().sum()
        shared = covariance / d * off
        total = total + spread + shared  # from left to right, as the sum was ever made
        terms["variance"], terms["covariance"] = (
            terms["variance"] + spread,
            terms["covariance"] + shared,
        )
    return {"loss": total, **terms}


Window = Literal["half", "full"]


@full_precision
def sigreg(
    z: Tensor,
    directions: Tensor,
    *,
    points: int = 17,
    limit: float = 5.0,
    window: Window = "half",
) -> Tensor:
    """Sliced Epps-Pulley statistic: how far projections are from a standard normal distribution in
    every direction.

        >>> collapsed = torch.zeros(100, 3)  # all vectors at 0: sqrt(2 pi) (1 - sqrt(2) + 1/sqrt(3)) for each row
        >>> round(float(sigreg(collapsed, torch.eye(3))), 2)
        40.89

    SIGReg = mean over the directions a of T_a,  T_a = n int abs(f(t) - exp(-t^2/2))^2 w(t) dt,
    f(t) = (1/n) sum_i exp(i t a.z_i), the integral by the trapezoid rule from -`limit` to `limit`.

    For a standard normal sample the expectation is 1.06 (half) or 0.52 (full) whatever n; for other
    distributions it grows with n. The vectors are neither standardised nor scaled: those of unit
    length look collapsed.

    Args:
        z: (n, d). directions: (d, m), each column is scaled to unit length.
        points: places t, equally spaced, both ends included.
        window: w(t) = exp(-t^2/2) (half, the paper's algorithm) or exp(-t^2) (full, its text with
            sigma = 1).

    Source: Balestriero & LeCun 2025 (arXiv 2511.08544), its definition and algorithm of SIGReg,
        which differ in w.
    """
    if z.ndim != 2 or directions.ndim != 2 or len(directions) != z.shape[1]:
        raise ValueError(
            f"expected (n, d) and (d, m), got {tuple(z.shape)} and {tuple(directions.shape)}"
        )
    t = torch.linspace(-limit, limit, points, dtype=z.dtype, device=z.device)
    normal = torch.exp(-t.square() / 2)
    waves = (z @ functional.normalize(directions, dim=0)).unsqueeze(-1) * t  # (n, m, points)
    apart = (waves.cos().mean(0) - normal).square() + waves.sin().mean(0).square()
    if window == "half":
        weight = normal
    else:
        weight = normal.square()
    return len(z) * torch.trapezoid(apart * weight, t).mean()


@full_precision
def lejepa(
    z_a: Tensor,
    z_b: Tensor,
    directions: Tensor,
    *,
    weight: float,
    points: int = 17,
    limit: float = 5.0,
    window: Window = "half",
    stacked: bool = False,
) -> dict[str, Tensor]:
    """Two views agree, and each is normally distributed: "loss" and its two weighted terms.

        >>> z = torch.zeros(10, 2)
        >>> {name: round(float(term), 4) for name, term in lejepa(z, z, torch.eye(2), weight=0.05).items()}
        {'loss': 0.2045, 'similarity': 0.0, 'gaussianity': 0.2045}

    L = (1 - w) mean over views, rows and features of (mu_i - z_i)^2 + w mean over views of
    `sigreg`, mu_i = (zA_i + zB_i)/2, gradients through it

    Args:
        z_a, z_b: (n, d). directions, points, limit, window: as `sigreg`.
        stacked: one statistic of the 2n rows of both views, in place of the mean of two.

    Source: Balestriero & LeCun 2025 (arXiv 2511.08544), the LeJEPA loss for two global views.
    """
    check_rows(z_a, z_b)
    if stacked:
        samples = [torch.cat([z_a, z_b])]
    else:
        samples = [z_a, z_b]
    spread = torch.stack(
        [sigreg(z, directions, points=points, limit=limit, window=window) for z in samples]
    ).mean()
    # each view is half of the difference from mu
    similarity = (1 - weight) * (z_a - z_b).square().mean() / 4
    gaussianity = weight * spread
    return {"loss": similarity + gaussianity, "similarity": similarity, "gaussianity": gaussianity}


@full_precision
def sliced_wasserstein(z: Tensor, directions: Tensor, *, eps: float = 1e-4) -> Tensor:
    """Squared distance of standardised rows from a normal distribution, along random directions.

        >>> z = torch.tensor([[-1.0], [1.0]])  # standardised already; normal quantiles: -+0.4307
        >>> round(float(sliced_wasserstein(z, torch.eye(1), eps=1e-12)), 4)
        0.3241

    W = mean over directions u and ranks i of (x_(i) - q_i)^2, x = ((z - mean) / (sd + eps)) u / norm(u)
    sorted, q_i the i/(n + 1) quantile of a standard normal distribution; sd, with n in its
    denominator, has no gradient.

    Args:
        z: (n, d). directions: (d, m), of any length.

    Source: VISReg (arXiv 2606.02572), Eq. 2 and 5.
    """
    n = len(z)
    sd = z.detach().std(dim=0, correction=0)
    x = (z - z.mean(dim=0)) / (sd + eps)
    along = x @ (directions / directions.norm(dim=0)).to(x.dtype)
    ranks = torch.arange(1, n + 1, dtype=torch.float64, device=z.device) / (n + 1)
    quantiles = torch.special.ndtri(ranks).to(x.dtype).unsqueeze(1)
    distance: Tensor = (along.sort(dim=0).values - quantiles).square().mean()
    return distance


@full_precision
def visreg_terms(
    z_a: Tensor,
    z_b: Tensor,
    directions: Tensor,
    *,
    weight: float,
    scale: float = 1.0,
    shape: float = 1.0,
    centre: float = 1.0,
    eps: float = 1e-4,
) -> dict[str, Tensor]:
    """Two views agree, every feature has spread 1, and slices are normal: "loss" and its terms.

        >>> z = torch.tensor([[-1.0], [1.0]])
        >>> terms = visreg_terms(z, z, torch.eye(1), weight=0.5, eps=1e-12)
        >>> {name: round(float(term), 4) for name, term in terms.items()}
        {'loss': 0.162, 'invariance': 0.0, 'scale': 0.0, 'shape': 0.162, 'centre': 0.0}

    L = (1 - w) mean of (mu - z)^2 + w (scale mean_j (1 - sd_j)^2 + shape `sliced_wasserstein`
    + centre mean_j mean_j^2), the last three of each view and averaged over views;
    mu_i = (zA_i + zB_i)/2; sd_j and mean_j of feature j, sd with n in its denominator.

    Args:
        z_a, z_b: (n, d). directions: as `sliced_wasserstein`. weight: w.

    Source: VISReg (arXiv 2606.02572), Eq. 1, 2, 5, 6 and 8 for two global views.
    """
    check_rows(z_a, z_b)
    views = (z_a, z_b)
    spread = torch.stack([(1 - z.std(dim=0, correction=0)).square().mean() for z in views]).mean()
    form = torch.stack([sliced_wasserstein(z, directions, eps=eps) for z in views]).mean()
    middle = torch.stack([z.mean(dim=0).square().mean() for z in views]).mean()
    terms = {
        # Each view is half of the difference from mu.
        "invariance": (1 - weight) * (z_a - z_b).square().mean() / 4,
        "scale": weight * scale * spread,
        "shape": weight * shape * form,
        "centre": weight * centre * middle,
    }
    return {"loss": torch.stack(list(terms.values())).sum(), **terms}


@full_precision
def sigmoid_pairs(a: Tensor, b: Tensor, *, scale: Tensor, bias: Tensor) -> Tensor:
    """Each pair of a row of `a` and a row of `b` is a decision of its own: do they belong together.

        >>> x = torch.eye(2)
        >>> round(float(sigmoid_pairs(x, x, scale=torch.tensor(1.0), bias=torch.tensor(0.0))), 4)
        1.0064

    L = -(1/n) sum_ij log sigmoid( y_ij (scale cos(a_i, b_j) + bias) ), y_ij = 1 where i = j, else -1

    Args:
        a, b: (n, d); row i of one belongs to row i of the other. scale, bias: scalars, learnt.

    Source: Zhai et al., Sigmoid loss for language image pre-training (ICCV 2023), algorithm 1.
    """
    check_rows(a, b)
    logits = scale * (unit(a) @ unit(b).T) + bias
    sign = 2 * torch.eye(len(a), dtype=logits.dtype, device=logits.device) - 1
    likelihoods: Tensor = functional.logsigmoid(sign * logits)
    return -likelihoods.sum() / len(a)


@full_precision
def self_contrast(h_a: Tensor, h_b: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Mean cosine of a sentence's two views over `temperature`: L_S = (1/n) sum_i cos(hA_i, hB_i) /
    t.

        >>> x = torch.eye(2)
        >>> float(self_contrast(x, x)), float(self_contrast(x, -x))
        (1.0, -1.0)

    Minimising it pushes the views apart. h_a, h_b: (n, d); gradient through both.

    Source: SCD Eq. 2, which has no temperature (the default, 1). The code divides by 0.05; its
    released weights were trained with the sum over the batch instead of the mean (multiply by n).
    """
    check_rows(h_a, h_b)
    check_temperature(temperature)
    return (unit(h_a) * unit(h_b)).sum(-1).mean() / temperature


Normalisation = Literal["center", "no_center", "literal"]


@full_precision
def decorrelation(
    p_a: Tensor,
    p_b: Tensor,
    *,
    off_diagonal_weight: float,
    normalisation: Normalisation = "center",
    literal_sign: bool = False,
    eps: float = 1e-5,
) -> Tensor:
    """Correlate each feature of two projections with itself and decorrelate it from the others.

        >>> p = torch.tensor([[1.0, 1.0], [1.0, 1.0], [-1.0, -1.0], [-1.0, -1.0]])  # one feature twice
        >>> round(float(decorrelation(p, p, off_diagonal_weight=0.1)), 4)
        0.2

    L_C = sum_j (1 - c_jj)^2 + w sum_{j != k} c_jk^2, plain sums, where c is, by `normalisation`,

    - "center" (code, default): the Pearson correlation, as an affine-free BatchNorm gives it
      (divisor n, eps 1e-5);
    - "no_center": sum_i pA_ij pB_ik / sqrt(sum_i pA_ij^2) sqrt(sum_i pB_ik^2), the cosine of two
      columns (`eps` is added to their mean squares);
    - "literal": Eq. 3 as printed, one root over the sum of products, sum_i pA_ij pB_ik / sqrt(sum_i
      pA_ij^2 pB_ik^2) (`eps` is added to the sum). Entries reach sqrt(n), so the target 1 is not
      the largest value.

    Args:
        p_a, p_b: (n, d), n >= 2.
        literal_sign: Eq. 4 as printed, with minus before the first term, which drives c_jj away
            from 1 against the paper's own explanation; for demonstration only. The code has plus.

    Source: SCD Eq. 3-4 and its code.
    """
    check_rows(p_a, p_b, rows=2)
    if normalisation == "literal":
        c = (p_a.T @ p_b) / (p_a.square().T @ p_b.square() + eps).sqrt()
        on = (1 - c.diagonal()).square().sum()
        off = off_diagonal_weight * (c - torch.diag(c.diagonal())).square().sum()
    else:
        if normalisation == "center":
            a, b = (_standardise(p, eps=eps) for p in (p_a, p_b))
        elif normalisation == "no_center":
            a, b = (p / (p.square().mean(0) + eps).sqrt() for p in (p_a, p_b))
        else:
            raise ValueError(
                f'normalisation must be "center", "no_center" or "literal", got {normalisation!r}'
            )
        on, off = _identity_penalty(a, b, off_diagonal_weight)
    if literal_sign:
        return off - on
    return on + off


@full_precision
def self_guided(
    cls: Tensor,
    layer_views: Tensor,
    *,
    temperature: float,
    variant: Literal["base", "opt1", "opt2", "opt3"] = "opt3",
) -> Tensor:
    """Pull the tuned model's last [CLS] toward pooled layers of its frozen copy.

        >>> x = torch.eye(2)
        >>> round(float(self_guided(x, x, temperature=1.0)), 4)  # one layer: log(1 + 1/e)
        0.3133

    With f(u, v) = exp(cos(u, v)/t), c_i = `cls` row i and h_ik = layer view k of sentence i (all
    after the head):

    - "base": `nt_xent_symmetric` of c and h, mean over 2n;
    - "opt1": anchors c_i only, denominator f(c_i,h_i) + sum_{j != i} [f(c_i,c_j) + f(c_i,h_j)],
      mean over n;
    - "opt2": opt1 without the c_j (the code drops one h_j by an off-by-one; all n - 1 are used
      here);
    - "opt3" (SG-OPT): every layer a positive, denominator f(c_i,h_ik) + sum_{j != i} sum_m
      f(c_i,h_jm), mean over n L.

    Args:
        cls: (n, d).
        layer_views: (n, L, d); (n, d) means L = 1. "base", "opt1" and "opt2" want L = 1: the layer
            that the caller drew for each sentence.

    Source: SG and its code.
    """
    if layer_views.ndim == 2:
        views = layer_views.unsqueeze(1)
    else:
        views = layer_views
    if cls.ndim != 2 or views.ndim != 3 or (views.shape[0], views.shape[2]) != tuple(cls.shape):
        raise ValueError(
            f"expected (n, d) and (n, L, d), got {tuple(cls.shape)} and {tuple(layer_views.shape)}"
        )
    check_temperature(temperature)
    if variant not in ("base", "opt1", "opt2", "opt3"):
        raise ValueError(f'variant must be "base", "opt1", "opt2" or "opt3", got {variant!r}')
    if variant != "opt3":
        if views.shape[1] != 1:
            raise ValueError(
                f'variant "{variant}" takes one layer view a sentence, got {views.shape[1]}'
            )
        h = views[:, 0]
        if variant == "base":
            return nt_xent_symmetric(cls, h, temperature=temperature)
        if variant == "opt2":
            return nt_xent(cls, h, temperature=temperature)
    n = len(cls)
    c = unit(cls)
    scores = torch.einsum("id,jkd->ijk", c, unit(views)) / temperature  # (n, n, L)
    itself = torch.eye(n, dtype=torch.bool, device=c.device)
    others = scores.masked_fill(itself[:, :, None], float("-inf")).flatten(1)  # (n, n L)
    if variant == "opt1":
        others = torch.cat(
            [others, (c @ c.T / temperature).masked_fill(itself, float("-inf"))], dim=1
        )
    own = scores.diagonal(dim1=0, dim2=1).T  # (n, L)
    if n == 1:
        # nothing to contrast with; also keeps logsumexp of an empty set out of the gradient
        return own.sum() * 0.0
    return (torch.logaddexp(own, others.logsumexp(1, keepdim=True)) - own).mean()

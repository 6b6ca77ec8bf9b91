"""Why a claim of the paper does not hold, or not in full, in the recorded runs. Reasons are text,
because rows do not contain them: for each study the first words of a claim, and the reason that was
found. The page shows them next to verdicts other than "holds".
"""

from collections.abc import Mapping

from experiments.study import Claim

_NAVAL = (
    "On Naval the authors' step of 0.01 is too large: with a quarter of it the variance is a "
    "sixth, and falls with more labels ([sequential-selection](sequential-selection.md)); with "
    "theirs it grows, as the outputs of networks swing from step to step, and what is measured is "
    "where each one stopped."
)
_XAVIER = (
    "On Robot Kinematics it is the initialisation: networks drawn by Xavier's rule differ as much "
    "after 60 labels as after 5, trained by Adam too, while gradient descent in the NTK "
    "parametrisation, which the criterion is about, shows the correlation."
)

_IDLE = (
    "ResNet18 has learnt nothing: with the authors' batches of 256 its 10 epochs are 10 steps, and "
    "its training loss is 2.2 where guessing gives 2.3."
)
_ONE = "One seed shows no more."
_BEHIND = (
    "On Naval picks in batches have more variance than random sets, as those by the exact kernel "
    "have ([batch-regression](batch-regression.md))"
)

REASONS: Mapping[str, Mapping[str, str]] = {
    "variance-correlation": {
        "The NTKGP's variance": f"{_NAVAL} By Adam they agree there too.",
        "The sparse NTKGP's variance": f"{_NAVAL}",
        "The variances are confined": f"{_NAVAL} By Adam they are confined there as well.",
        "Summed over points": "It is one number from all subsets. By gradient descent it is lower "
        "on Naval, for the reason above, on Robot Kinematics, for that in "
        "[sequential-selection](sequential-selection.md), and on the digits, where both are high.",
        "Ours: the closed form": "It is that of networks trained forever; on Naval and Protein "
        "Adam stops short of that (the training loss above). On the other two it is closer.",
    },
    "sequential-selection": {
        "The criterion is highly": f"{_NAVAL} {_XAVIER}",
        "Sets of picks lie": "It is so with every seed on all but Naval (see above).",
        "Picking by the criterion progressively": "It falls at every step on Boston alone. On "
        "Naval see above; on Protein it grows from 10 labels to 20, on the digits and on Robot "
        "Kinematics from 20 to 40. A variance over 10 networks has an error of 47 % itself at each "
        "point.",
        "Picking by the criterion consistently": "On Naval picks have more variance than random "
        "sets from 20 labels on (see above); on Protein with 40 and 60 labels, and on Robot "
        "Kinematics with 5 and 10, the lead is within its error.",
        "Picking by the criterion also": "On Robot Kinematics picks and random sets have the same "
        "error, as in batches ([batch-regression](batch-regression.md)); on Protein it grows once, "
        "from 10 to 20 labels. On Boston, Naval and the digits the mean falls at every step, on "
        "Naval alone each time beyond the error.",
    },
    "batch-regression": {
        "EV-GP selects batches that lead to low output variance": "On Naval the step of gradient "
        "descent is too large ([sequential-selection](sequential-selection.md)), and the variance "
        "says where networks stopped; MLMOC has the lowest, and by far the largest error. On "
        "Protein k-means++ has the lower variance, and the larger error.",
        "EV-GP selects batches that lead to small": "It has the best mean on every dataset; on "
        "Robot Kinematics, where random sets are as good as any, by less than the standard error "
        "(and not at all if the two ends of the curve counted whole).",
        "EV-GP outperforms random": "As for the two claims above.",
        "K-Means++ is prone": "So on Naval alone, on Protein they are level; on Robot Kinematics "
        "and Boston the picks of EV-GP are farther out. Ours is scikit-learn's k-means++, which "
        "draws several points each time and keeps the one that lowers the distances most, seldom "
        "an outlier; the authors do not say which they ran.",
    },
    "fit-and-bias": {
        "Where the criterion is more": "One pair is out of order: the digits have the stronger "
        "correlation and twice the bias of Boston. Why is not known.",
        "Even where the correlation": "On Robot Kinematics picks and random sets have the same "
        "error ([sequential-selection](sequential-selection.md)).",
    },
    "other-criteria": {
        "100V performs poorly": "It is behind EV by both on Protein, Boston, Naval and the digits, "
        "and in variance on Random Model; on Robot Kinematics one by one it is level in variance "
        "and ahead in test MSE, in batches behind in variance alone. There are no outliers to "
        "chase there: the largest prior variance of the pool is twice the mean, on Boston and "
        "Protein 7 and 15 times (of the kernel, not in the rows).",
        "90V is better than 100V": "Compared with 100V it is level, one by one, on Robot "
        "Kinematics and Naval, on the digits in variance and on Random Model in test MSE. Compared "
        "with EV the difference is within its error, one by one, on Protein, Robot Kinematics, "
        "Boston and Random Model; in batches it is ahead on Robot Kinematics in test MSE.",
        "MI is often good": "It is ahead of EV by the mean in a few, nowhere beyond the error.",
        "MI takes more": "On Boston seeds disagree (half, two fifths and four times the seconds "
        "of EV): picks take about a second there, and cells shared the cores.",
        "The criteria are correlated": "Not so on Naval and Robot Kinematics, for the two reasons "
        "in [sequential-selection](sequential-selection.md): too large a step, and Xavier's "
        "initialisation; on Protein 100V is above 0.5 by less than its error.",
        "Some training sets of 100V": "With each seed, training restarted for one set of 100V and "
        "one of EV, all on the digits.",
        "The criterion may look": "At 500 points it is a little more on two datasets; with more of "
        "them it is less (the figure).",
    },
    "approximations": {
        "The empirical kernel": "In output variance it loses on Robot Kinematics in batches and on "
        "Naval one by one; elsewhere, and everywhere in test MSE, the difference is within its "
        f"error or a gain. {_BEHIND}; one by one, on Robot Kinematics, it has the error of random "
        "sets, as exact picks have. Elsewhere it is useful by both.",
        "The sparse posterior": f"{_BEHIND}; one by one, on Robot Kinematics, it has the error of "
        "random sets, as exact picks have. Elsewhere it is useful by both.",
        "A linear approximation": "It leaves a quarter more predicted variance. One by one it is "
        "behind on Naval by both, on Boston in test MSE and on Protein in variance, the other "
        "metric being within its error, and not on Robot Kinematics; in batches on Naval in "
        "variance, but ahead in test MSE.",
        "For small sets": "With every seed it took a thirtieth to a sixth of the exact one's "
        "seconds. The paper counts what a set of picks costs, which indeed is more with inducing "
        "points as long as there are fewer picks than these. But here the pool is its own test "
        "set, and most of the time goes into covariances: of every point with every other for the "
        "exact posterior (4,096 or 5,967 each), with 200 inducing points for the sparse one.",
    },
    "classification-mlp": {
        "EV-GP selects points that lead to initialisation": "On EMNIST, with 2 seeds, k-means++ is "
        "level with it in entropy, though behind in accuracy.",
        "Especially in the earlier": "The lead is largest after the first batch, by the mean, in "
        "all four. On EMNIST the change in accuracy, and the first lead in entropy, are within "
        "their error, with 2 seeds; the rest is clear.",
    },
    "classification-convolutions": {
        "With CNNs and WideResNets": "On EMNIST it is ahead of each. On SVHN, with one seed, the "
        "WideResNet is hardly trained at 100 labels (training loss 1.0 to 2.0), where EV-GP is "
        "behind k-means++ and BADGE; at 200 it is level with BADGE. On CIFAR-100 EV-GP's picks are "
        "not fitted (training loss 1.0 and 0.27, that of random ones 0.002 and 0.0005), and all "
        f"reach 3 to 5 %. {_IDLE}",
        "EV-GP can generally": "So on EMNIST, where k-means++ is better still. On SVHN, at 100 "
        "labels, the two lowest entropies are those of the two highest training losses (1.8 and "
        "2.0); at 200, where networks are trained, EV-GP has the highest (0.70, others 0.60 to "
        "0.61), with one seed. On CIFAR-100 its picks are not fitted (training loss 1.0 and 0.27), "
        f"and at 200 labels its entropy is that of random ones. {_IDLE}",
    },
    "batch-size": {
        "MLMOC experiences": "One dataset was run. Part of its fall from 100 on is that it picks "
        "within the first batch without the labels of its random points.",
    },
    "running-time": {
        "MNIST: the running time": _ONE,
        "MNIST: the cost": "BADGE takes an eighth of the time of EV-GP; in the paper's own table "
        "it is a ninetieth.",
        "MNIST: BADGE": _ONE,
        "SVHN: the running time": _ONE,
        "SVHN: the cost": "BADGE takes a sixth of the time of EV-GP, trained for 10 epochs in "
        "place of 100; in the paper's own table, at 200 picks, it is a hundredth.",
        "SVHN: BADGE": _ONE,
    },
    "width": {
        "A wider network for the picks improves": "From 128 to 512 the differences are within the "
        "error; that the empirical kernel of one network changes with the draw may be why, and is "
        "not recorded.",
        "A wider network for the picks has": "It is more than a third of the change with the width "
        "in training, and clear of its error.",
    },
    "model-selection": {
        "EV-GP+MS does better": "On Naval, at 40 labels, EV-GP+MS chose erf-1, erf-2 or gelu-2 "
        "where NASWOT had erf-4, a worse choice with each of the five seeds; later both have "
        "mostly erf-4 or erf-3, whose error jumps between 0.002 and 0.08 from one size to the "
        "next. On Robot Kinematics (relu-4, NASWOT gelu-4) there is no difference up to 140 "
        "labels, then it is behind, by 14 % at 200.",
        "The score is an accurate": "On Naval the error is what training has not fitted (the "
        "training loss ranks architectures at 0.99); on Protein, at 200 labels, what fits the "
        "labels worse predicts better (the rank of the training loss is negative).",
        "Several networks": "The best network is seldom chosen, but its score is farther "
        "from that of the chosen one, by the median, than its error is (1.36 and 1.27).",
        "The network that is selected": "Where it is not, the score does not rank the "
        "architectures either (the Spearman above): Sinusoidal at 20 labels, Protein at 200.",
        "Ours: keeping the network": "It halves the changes of network, but what it keeps was "
        "chosen on few labels. On Naval three of the five seeds are worse with it.",
    },
    "map-of-picks": {
        "Picks prefer regions": "Picks are where the standard deviation is high; but they prefer "
        "sparse places to crowded ones (below 50 by more than the standard error). Whether they "
        "cover the space evenly is not tested.",
    },
    "exchange-and-certificate": {
        "Greedy picks reach": "It was reached each time; nothing guarantees that it always is.",
    },
}


def reason(study: str, claim: Claim) -> str:
    """Return why this claim does not hold in full; empty if it does."""
    if claim.verdict in ("holds", "not measured"):
        return ""
    known = REASONS.get(study, {})
    return next((why for words, why in known.items() if claim.paper.startswith(words)), "")
